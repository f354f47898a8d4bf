// deltagauge list WHAT: every list is read from the table that the program itself works by.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "core/error.h"
#include "core/inputs.h"
#include "core/op.h"
#include "core/sweep.h"
#include "kernels/gdn/gdn.h"
#include "reference/staging.h"
#include "reports/file.h"
#include "validate/cli.h"
#include "validate/cp/staged_op.h"
#include "validate/run.h"

namespace deltagauge::validate::cli {
namespace {

namespace fs = std::filesystem;

std::string str(std::string_view text) { return std::string(text); }

Listing ops_list() {
  Listing out{{"name", "summary"}, {}};
  for (const OpInfo& op : ops()) out.rows.push_back({str(op.name), str(op.summary)});
  return out;
}

Listing axes_list() {
  Listing out{{"name", "values", "default", "ops", "meaning"}, {}};
  for (const Axis& axis : axes())
    out.rows.push_back({str(axis.name), str(axis.values), axis.get(Case{}), str(axis.ops), str(axis.meaning)});
  return out;
}

Listing backends_list() {
  const Registry registry = all_backends("reference.peer.*", "mode=turns");
  Listing out{{"name", "comes with", "summary"}, {}};
  for (const Backend* backend : registry.match("*")) {
    const std::string name = str(backend->name());
    const bool host = name.starts_with("host."), peer = name.starts_with("reference.peer.");
    out.rows.push_back({name, host ? "--host" : peer ? "its name" : "", str(backend->summary())});
  }
  for (const auto& op : validate::cp::all_ops()) out.rows.push_back({str(op->name()), "cp", "gdn over ranks"});
  return out;
}

Listing variants_list() {
  Listing out{{"name", "staging", "io", "head sizes", "limits", "summary"}, {}};
  for (const auto& v : kernels::gdn::variants()) {
    std::string limits;
    for (const auto& limit : v.limits)
      limits += fmt::format("{}{} {} {:.3g}", limits.empty() ? "" : ", ", limit.quantity, name(limit.io), limit.largest);
    out.rows.push_back(
        {"gdn." + str(v.name), str(v.staging), str(v.io), str(v.head_sizes), limits.empty() ? "-" : limits, str(v.summary)});
  }
  return out;
}

Listing checks_list() {
  Listing out{{"name", "summary"}, {}};
  for (const CheckInfo& check : checks()) out.rows.push_back({str(check.name), str(check.summary)});
  return out;
}

Listing regimes_list() {
  Listing out{{"axis", "name", "meaning"}, {}};
  for (const RegimeInfo& regime : regimes()) out.rows.push_back({str(regime.axis), str(regime.name), str(regime.meaning)});
  return out;
}

Listing stagings_list() {
  Listing out{{"name", "op", "chunk", "sums", "solver", "summary"}, {}};
  for (const reference::Staging& s : reference::stagings())
    out.rows.push_back({str(s.name), str(s.op), std::to_string(s.chunk), str(reference::name(s.accumulate)),
                        s.chunk ? str(reference::name(s.solver)) : "-", str(s.summary)});
  return out;
}

// The configs folder: below the working directory, else beside the binary's build folder, else where install puts it.
fs::path configs_folder() {
  std::error_code ignored;
  const fs::path binary = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& folder :
       {fs::path("configs"), binary.parent_path() / "configs", binary.parent_path() / "share" / "deltagauge" / "configs"})
    if (fs::is_directory(folder, ignored)) return folder;
  fail("configs: expected the folder configs here or beside the binary, found none");
}

Listing configs_list() {
  Listing out{{"path", "kind", "cases", "name"}, {}};
  const fs::path folder = configs_folder();
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const std::string path = entry.path().string();
    if (entry.path().parent_path().filename() == "models") {
      out.rows.push_back({path, "model", "", entry.path().stem().string()});
      continue;
    }
    const Sweep sweep = load_sweep(path);
    out.rows.push_back({path, "sweep", std::to_string(sweep.cases.size()), sweep.name});
  }
  std::sort(out.rows.begin(), out.rows.end());
  return out;
}

constexpr struct {
  const char* what;
  Listing (*list)();
} kLists[] = {{"ops", ops_list},           {"axes", axes_list},     {"regimes", regimes_list},   {"backends", backends_list},
              {"variants", variants_list}, {"checks", checks_list}, {"stagings", stagings_list}, {"configs", configs_list}};

}  // namespace

std::vector<std::string> listable() {
  std::vector<std::string> names;
  for (const auto& one : kLists) names.emplace_back(one.what);
  return names;
}

int list(const std::string& what, bool json) {
  for (const auto& one : kLists) {
    if (what != one.what) continue;
    const Listing listing = one.list();
    std::cout << (json ? as_json(listing) : as_text(listing));
    return 0;
  }
  std::string known;
  for (const auto& one : kLists) known += " " + std::string(one.what);
  fail("list: expected one of", known, ", got '", what, "'");
}

}  // namespace deltagauge::validate::cli
