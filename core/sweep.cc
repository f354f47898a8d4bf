#include "core/sweep.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/error.h"
#include "core/json_text.h"
#include "core/op.h"

namespace deltagauge {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t kMaxCases = 1 << 20;  // of one grid entry

// A JSON value and where it stands, so that every complaint names its path.
struct Node {
  const Json& value;
  std::string path;  // "$.grid[0].axes.len"

  Node at(const std::string& key) const { return {value.at(key), path + "." + key}; }
  Node at(std::size_t i) const { return {value.at(i), path + "[" + std::to_string(i) + "]"}; }
  bool has(const std::string& key) const { return value.contains(key); }

  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(path, ": ", parts...);
  }

  void expect_keys(std::initializer_list<std::string_view> known) const {
    if (!value.is_object()) refuse("expected an object, got ", value.type_name());
    for (const auto& [key, item] : value.items()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      std::string names;
      for (const auto k : known) names += " " + std::string(k);
      refuse("unknown key '", key, "'; expected one of", names);
    }
  }
  std::string text() const {
    if (!value.is_string()) refuse("expected a string, got ", value.dump());
    return value.get<std::string>();
  }
  std::string text_or(const std::string& key, std::string fallback) const { return has(key) ? at(key).text() : fallback; }
  double real() const {
    if (!value.is_number()) refuse("expected a number, got ", value.dump());
    return value.get<double>();
  }
  // An axis value: a string, or a number as JSON wrote it.
  std::string axis_text() const {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_number()) return value.dump();
    refuse("expected a string or a number, got ", value.dump());
  }
  std::size_t array_size() const {
    if (!value.is_array()) refuse("expected an array, got ", value.type_name());
    return value.size();
  }
};

std::vector<std::string> read_checks(const Node& node, std::vector<std::string> fallback, const RequireCheck& require) {
  if (!node.has("checks")) return fallback;
  const Node list = node.at("checks");
  std::vector<std::string> checks;
  for (std::size_t i = 0; i < list.array_size(); ++i) {
    const Node item = list.at(i);
    checks.push_back(item.text());
    if (require) try {
        require(checks.back());
      } catch (const Error& e) {
        item.refuse(e.what());
      }
  }
  if (checks.empty()) list.refuse("expected at least one check, got []");
  return checks;
}

std::vector<Ceiling> read_ceilings(const Node& node) {
  std::vector<Ceiling> ceilings;
  if (!node.has("ceilings")) return ceilings;
  const Node list = node.at("ceilings");
  for (std::size_t i = 0; i < list.array_size(); ++i) {
    const Node item = list.at(i);
    item.expect_keys({"tensor", "metric", "value", "from"});
    for (const char* key : {"tensor", "metric", "value", "from"})
      if (!item.has(key)) item.refuse("needs a '", key, "'");
    Ceiling c{item.at("tensor").text(), item.at("metric").text(), item.at("value").real(), item.at("from").text()};
    if (c.metric != "rel_l2" && c.metric != "worst_row")
      item.at("metric").refuse("expected rel_l2 or worst_row, got '", c.metric, "'");
    if (!(c.value > 0)) item.at("value").refuse("expected a number > 0, got ", c.value);
    ceilings.push_back(std::move(c));
  }
  return ceilings;
}

void set_at(Case& c, const std::string& axis, const Node& node, const std::string& text) {
  try {
    set_axis(c, axis, text);
  } catch (const Error& e) {
    node.refuse(e.what());
  }
}

void check_at(const Case& c, const Node& node) {
  try {
    check(c.problem);
  } catch (const Error& e) {
    node.refuse(e.what());
  }
}

struct Common {
  std::string op;
  std::vector<std::pair<std::string, std::string>> defaults;
  std::vector<std::string> checks;
  const RequireCheck& require_check;
};

// One grid entry: the cross product of its axes, the last varying fastest.
void expand_grid(const Node& entry, const Common& common, std::vector<SweepCase>& cases) {
  entry.expect_keys({"name", "note", "checks", "axes", "ceilings"});
  SweepCase base;
  base.test.problem.op = common.op;
  base.name = entry.text_or("name", "");
  base.note = entry.text_or("note", "");
  base.checks = read_checks(entry, common.checks, common.require_check);
  base.ceilings = read_ceilings(entry);
  for (const auto& [axis, text] : common.defaults) set_axis(base.test, axis, text);
  std::vector<SweepCase> points{base};
  if (entry.has("axes")) {
    const Node axes_node = entry.at("axes");
    if (!axes_node.value.is_object()) axes_node.refuse("expected an object, got ", axes_node.value.type_name());
    for (const auto& [axis, item] : axes_node.value.items()) {
      const Node node = axes_node.at(axis);
      std::vector<SweepCase> next;
      const bool list = node.value.is_array();
      if (const std::size_t values = list ? node.value.size() : 1; points.size() * values > kMaxCases)
        node.refuse("expected a grid of at most ", kMaxCases, " cases, got ", points.size() * values, " up to here");
      if (list && node.value.empty()) node.refuse("expected at least one value, got []");
      for (const SweepCase& point : points)
        for (std::size_t i = 0; i < (list ? node.value.size() : 1); ++i) {
          const Node one = list ? node.at(i) : node;
          next.push_back(point);
          set_at(next.back().test, axis, one, one.axis_text());
        }
      points = std::move(next);
    }
  }
  for (SweepCase& point : points) {
    check_at(point.test, entry);
    cases.push_back(std::move(point));
  }
}

SweepCase read_case(const Node& entry, const Common& common) {
  SweepCase c;
  c.checks = common.checks;
  if (!entry.value.is_string()) {
    entry.expect_keys({"id", "name", "note", "checks", "expect", "ceilings"});
    if (!entry.has("id")) entry.refuse("needs an 'id'");
    c.name = entry.text_or("name", "");
    c.note = entry.text_or("note", "");
    c.checks = read_checks(entry, common.checks, common.require_check);
    c.ceilings = read_ceilings(entry);
    c.expect = entry.text_or("expect", "pass");
    if (c.expect != "pass" && c.expect != "refused")
      entry.at("expect").refuse("expected pass or refused, got '", c.expect, "'");
  }
  const std::string text = entry.value.is_string() ? entry.text() : entry.at("id").text();
  const std::string path = entry.value.is_string() ? entry.path : entry.path + ".id";
  try {
    c.test = parse_id(text);
  } catch (const Error& e) {
    fail(path, ": ", e.what());
  }
  return c;
}

}  // namespace

Sweep parse_sweep(std::string_view json, const std::string& path, const RequireCheck& require_check) {
  try {
    check_json_text(json, JsonPath::dollar);
    Json document;
    try {
      document = Json::parse(json);
    } catch (const Json::exception& e) {
      fail("not JSON: ", e.what());
    }
    const Node root{document, "$"};
    root.expect_keys({"schema", "name", "note", "op", "backend", "checks", "defaults", "grid", "cases"});
    if (root.text_or("schema", "") != "deltagauge.sweep/1")
      root.refuse("schema: expected \"deltagauge.sweep/1\", got '", root.text_or("schema", ""), "'");
    Sweep sweep;
    sweep.path = path;
    sweep.name = root.text_or("name", path);
    sweep.backend = root.text_or("backend", "*");
    Common common{root.text_or("op", "gdn"), {}, read_checks(root, {"accuracy"}, require_check), require_check};
    Case probe;
    probe.problem.op = common.op;
    try {
      op_info(common.op);
    } catch (const Error& e) {
      root.at("op").refuse(e.what());
    }
    if (root.has("defaults")) {
      const Node defaults = root.at("defaults");
      if (!defaults.value.is_object()) defaults.refuse("expected an object, got ", defaults.value.type_name());
      for (const auto& [axis, item] : defaults.value.items()) {
        const Node node = defaults.at(axis);
        set_at(probe, axis, node, node.axis_text());
        common.defaults.emplace_back(axis, node.axis_text());
      }
    }
    if (root.has("grid")) {
      const Node grid = root.at("grid");
      for (std::size_t i = 0; i < grid.array_size(); ++i) expand_grid(grid.at(i), common, sweep.cases);
    }
    if (root.has("cases")) {
      const Node cases = root.at("cases");
      for (std::size_t i = 0; i < cases.array_size(); ++i) sweep.cases.push_back(read_case(cases.at(i), common));
    }
    if (sweep.cases.empty()) root.refuse("expected cases in 'grid' or 'cases', got none");
    return sweep;
  } catch (const Error& e) {
    fail(path, ": ", e.what());
  }
}

Sweep load_sweep(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) fail("config ", path, ": expected a file, got a directory");
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("config ", path, ": cannot be opened: ", std::strerror(errno));
  std::ostringstream text;
  text << file.rdbuf();
  if (!file.good() && !file.eof()) fail("config ", path, ": cannot be read");
  return parse_sweep(text.str(), path);
}

void override_axis(Sweep& sweep, std::string_view axis, std::string_view text) {
  std::set<std::string> seen;
  std::vector<SweepCase> kept;
  for (SweepCase& c : sweep.cases) {
    set_axis(c.test, axis, text);
    check(c.test.problem);
    c.ceilings.clear();  // they were reached on the case as it stood
    if (seen.insert(to_id(c.test)).second) kept.push_back(std::move(c));
  }
  sweep.cases = std::move(kept);
}

}  // namespace deltagauge
