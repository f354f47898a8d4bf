#include "reports/compare/merge.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <sstream>
#include <string_view>

#include "core/error.h"

namespace deltagauge::reports::compare {
namespace {

std::string described(const Tool& t) {
  std::ostringstream out;
  out << t.version << ' ' << t.git_sha << (t.dirty ? " dirty" : "") << ", " << t.compiler << ", archs";
  for (const std::string& arch : t.cuda_archs) out << ' ' << arch;
  return out.str();
}

std::string described(const std::optional<Device>& d) {
  if (!d) return "none";
  std::ostringstream out;
  out << d->name << " (sm_" << d->sm << ", " << d->sm_count << " SMs), driver " << d->driver << ", runtime " << d->runtime
      << ", " << d->clock_mhz << " and " << d->memory_mhz << " MHz";
  return out.str();
}

std::string described(const std::vector<ConfigFile>& configs) {
  std::ostringstream out;
  for (const ConfigFile& config : configs) out << (out.tellp() ? ", " : "") << config.path << ' ' << config.sha256;
  return configs.empty() ? "none" : out.str();
}

std::string described(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return words.empty() ? "none" : text;
}

// Flags that verdicts do not depend on.
enum class Says { where, how };
struct Flag {
  std::string_view name;
  Says says;
  int values;
};
constexpr Flag kFlags[] = {
    {"--report", Says::where, 1}, {"--json", Says::where, 1},        {"--html", Says::where, 1},
    {"--trace", Says::where, 1},  {"--junit", Says::where, 1},       {"--sarif", Says::where, 1},
    {"--csv", Says::where, 1},    {"--openmetrics", Says::where, 1}, {"--markdown", Says::where, 1},
    {"--gbench", Says::where, 1}, {"--bencher", Says::where, 1},     {"--github", Says::where, 0},
    {"--quiet", Says::where, 0},  {"--shard", Says::where, 1},       {"--resume", Says::where, 1},
    {"--isolate", Says::how, 0},  {"--timeout", Says::how, 1},       {"--shrink", Says::how, 0},
};

// Behind the program's name, without the flags that say one of these and their values; --flag=value is as --flag value.
std::vector<std::string> without(const std::vector<std::string>& argv, std::initializer_list<Says> what) {
  std::vector<std::string> words;
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const std::string& word = argv[i];
    const auto eq = word.starts_with("--") ? word.find('=') : std::string::npos;
    const std::string name = word.substr(0, eq);
    const auto flag = std::find_if(std::begin(kFlags), std::end(kFlags), [&](const Flag& f) {
      return f.name == name && std::find(what.begin(), what.end(), f.says) != what.end();
    });
    if (flag != std::end(kFlags)) {
      if (eq == std::string::npos) i += static_cast<std::size_t>(flag->values);
      continue;
    }
    words.push_back(name);
    if (eq != std::string::npos) words.push_back(word.substr(eq + 1));
  }
  return words;
}

template <class T>
void require_same(const std::string& where, const char* what, const T& want, const T& got) {
  if (described(want) != described(got)) fail(where, ": ", what, ": expected ", described(want), ", got ", described(got));
}

}  // namespace

void require_same_run(const std::string& where, const Report& want, const Report& got) {
  require_same(where, "tool", want.tool, got.tool);
  require_same(where, "device", want.device, got.device);
  require_same(where, "configs", want.configs, got.configs);
}

void require_same_words(const std::string& where, const std::vector<std::string>& want,
                        const std::vector<std::string>& got) {
  require_same(where, "command", want, got);
}

std::vector<std::string> words_of_all(const std::vector<std::string>& argv) { return without(argv, {Says::where}); }
std::vector<std::string> words_of_verdicts(const std::vector<std::string>& argv) {
  return without(argv, {Says::where, Says::how});
}

Report merge(std::span<const Report> shards, std::span<const std::string> names) {
  if (shards.empty()) fail("merge: expected at least one report, got none");
  std::map<std::int64_t, const Report*> parts;
  const auto shard_of = [](const Report& report) { return report.shard.value_or(Shard{}); };
  const std::int64_t of = shard_of(shards[0]).parts;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const Report& one = shards[i];
    require_same_run(names[i], shards[0], one);
    require_same_words(names[i], words_of_all(shards[0].argv), words_of_all(one.argv));
    if (one.jobs_left) fail(names[i], ": expected a finished run, got one with ", one.jobs_left, " jobs left");
    const Shard shard = shard_of(one);
    if (shard.parts != of) fail(names[i], ": expected a shard of ", of, ", got ", to_string(shard));
    if (!parts.emplace(shard.part, &one).second)
      fail(names[i], ": expected each shard once, got ", to_string(shard), " again");
  }
  std::string missing;
  for (std::int64_t part = 1; part <= of && missing.size() < 60; ++part)
    if (!parts.contains(part)) missing += " " + to_string(Shard{part, of});
  if (!missing.empty()) fail("merge: expected all ", of, " shards, got none of", missing);

  Report out = *parts.at(1);
  out.argv = words_of_all(out.argv);
  if (!out.argv.empty()) out.argv.insert(out.argv.begin(), parts.at(1)->argv[0]);
  out.shard.reset();
  out.results.clear();
  for (const auto& [part, one] : parts) {
    if (!out.roofline) out.roofline = one->roofline;
    out.results.insert(out.results.end(), one->results.begin(), one->results.end());
  }
  return out;
}

}  // namespace deltagauge::reports::compare
