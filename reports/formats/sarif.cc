// SARIF 2.1.0, within what GitHub code scanning takes: a rule a check, a result a failed or broken row. Every result has a
// location, as GitHub asks: its config, or "command-line" where no single config is known.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/formats/formats.h"
#include "reports/formats/text.h"
#include "reports/sha256.h"

namespace deltagauge::reports {
namespace {

using namespace formats;
using Json = nlohmann::ordered_json;

// A path as a URI reference (RFC 3986): absolute paths as file URIs.
std::string uri_of(const std::string& path) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  constexpr const char* kHex = "0123456789ABCDEF";
  std::string uri = path.starts_with("/") ? "file://" : "";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (kPlain.find(c) != std::string_view::npos)
      uri += c;
    else
      uri += {'%', kHex[byte >> 4], kHex[byte & 15]};
  }
  return uri;
}

Json rule(const Report& report, const std::string& check) {
  const bool timed = std::any_of(report.results.begin(), report.results.end(),
                                 [&](const Result& r) { return r.timing && clean(r.check) == check; });
  const std::string about = "The check " + check + " failed or could not be carried out.";
  return {{"id", check},
          {"shortDescription", {{"text", "check " + check}}},
          {"fullDescription", {{"text", about}}},
          {"help", {{"text", about + " 'deltagauge list checks' says what each check asks."}}},
          {"defaultConfiguration", {{"level", "error"}}},
          {"properties", {{"tags", Json::array({timed ? "performance" : "numerics"})}}}};
}

Json result(const Report& report, const Result& r, std::size_t rule_index) {
  std::string message = r.backend + " " + r.check + (r.outcome == Outcome::fail ? " failed: " : " broke: ") + r.reason;
  message += "\nCase: " + r.test;
  if (!r.repro.empty()) message += "\nAgain: " + r.repro;
  const std::string config = config_of(report, r);
  const std::string fingerprint = sha256(r.test + '\0' + r.check + '\0' + r.backend);
  const Json place = {{"artifactLocation", {{"uri", uri_of(config.empty() ? "command-line" : config)}}},
                      {"region", {{"startLine", 1}}}};
  const Json logical = {{"fullyQualifiedName", benchmark_name(r)}};
  const Json location = {{"physicalLocation", place}, {"logicalLocations", Json::array({logical})}};
  // GitHub matches results of different runs by primaryLocationLineHash alone, which is 16 digits and a count.
  return {{"ruleId", clean(r.check)},
          {"ruleIndex", rule_index},
          {"kind", "fail"},
          {"level", "error"},
          {"message", {{"text", clean(message)}}},
          {"locations", Json::array({location})},
          {"partialFingerprints",
           {{"primaryLocationLineHash", fingerprint.substr(0, 16) + ":1"}, {"deltagauge/v1", fingerprint}}},
          {"properties",
           {{"outcome", name(r.outcome)},
            {"op", clean(r.op)},
            {"direction", clean(r.direction)},
            {"backend", clean(r.backend)}}}};
}

}  // namespace

std::string to_sarif(const Report& report) {
  std::vector<std::string> checks;
  Json rules = Json::array(), results = Json::array(), arguments = Json::array();
  for (const Result& r : report.results) {
    const std::string check = clean(r.check);
    auto found = std::find(checks.begin(), checks.end(), check);
    if (found == checks.end()) {
      rules.push_back(rule(report, check));
      found = checks.insert(checks.end(), check);
    }
    if (r.outcome == Outcome::fail || r.outcome == Outcome::error)
      results.push_back(result(report, r, static_cast<std::size_t>(found - checks.begin())));
  }
  for (std::size_t i = 1; i < report.argv.size(); ++i) arguments.push_back(clean(report.argv[i]));
  // The machinery worked when no row broke and none is left, whatever the verdicts.
  const Json invocation = {{"executionSuccessful", report.summary().errors == 0 && !report.jobs_left},
                           {"exitCode", report.exit_status()},
                           {"arguments", arguments}};
  const Json driver = {{"name", "deltagauge"},
                       {"version", clean(report.tool.version)},
                       {"properties", {{"git_sha", clean(report.tool.git_sha)}}},
                       {"rules", rules}};
  Json run = {{"tool", {{"driver", driver}}}};
  run["invocations"] = Json::array({invocation});
  run["results"] = results;
  Json root = {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"}, {"version", "2.1.0"}};
  root["runs"] = Json::array({run});
  return root.dump(1) + "\n";
}

}  // namespace deltagauge::reports
