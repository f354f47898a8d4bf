// Sweep configs: JSON that expands to cases, with the checks to run on them. Unknown keys and bad values are errors that
// name their JSON path. Format: docs/cli.md#configs.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem.h"

namespace deltagauge {

// A figure a case must not exceed because someone else reached it: facts with a source, not tolerances.
struct Ceiling {
  std::string tensor, metric;  // "o", "rel_l2" | "worst_row"
  double value = 0;
  std::string from;  // who reached it
};

struct SweepCase {
  Case test;
  std::string name, note;  // from the config; empty for grid points
  std::vector<std::string> checks;
  std::vector<Ceiling> ceilings;
  std::string expect = "pass";  // "pass", or "refused" when make_inputs or the backend must refuse it
};

struct Sweep {
  std::string path, name, backend;  // backend: a glob, "*" when the config does not say
  std::vector<SweepCase> cases;
};

using RequireCheck = std::function<void(const std::string& name)>;  // throws Error for a name that no check has
Sweep load_sweep(const std::string& path);                          // throws Error
// Without require_check any name will do.
Sweep parse_sweep(std::string_view json, const std::string& path, const RequireCheck& require_check = {});
void override_axis(Sweep& sweep, std::string_view name, std::string_view text);  // --set: drops duplicates it creates

}  // namespace deltagauge
