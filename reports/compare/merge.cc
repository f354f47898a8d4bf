#include "reports/compare/merge.h"

#include <set>
#include <sstream>
#include <tuple>

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

Report merge(std::span<const Report> shards) {
  if (shards.empty()) fail("merge: expected at least one report, got none");
  Report out = shards[0];
  out.results.clear();
  std::set<std::tuple<std::string, std::string, std::string>> seen;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    require_same_run("shard " + std::to_string(i + 1), shards[0], shards[i]);
    if (!out.roofline) out.roofline = shards[i].roofline;
    for (const Result& row : shards[i].results) {
      if (!seen.emplace(row.test, row.backend, row.check).second)
        fail("shard ", i + 1, ": expected one row of each case, backend and check, got a second of ", row.test, " ",
             row.backend, " ", row.check);
      out.results.push_back(row);
    }
  }
  return out;
}

}  // namespace deltagauge::reports::compare
