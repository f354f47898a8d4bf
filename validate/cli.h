// The subcommands of the deltagauge binary, behind the flags: main.cc parses, these run. Each returns the exit status
// (0 judged and passed, 1 a verdict failed, 2 wrong usage or input, 3 nothing judged) and throws Error for 2.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/backend.h"
#include "reports/report.h"

namespace deltagauge::validate::cli {

struct ValidateArgs {
  std::vector<std::string> configs, cases;  // paths of sweeps; case ids
  std::string tensors, op, staging;         // --tensors FILE --op OP [--staging NAME]
  std::string backend = "*", oracle = "auto", filter = "*";
  std::vector<std::string> checks, settings;  // settings: AXIS=VALUE
  std::string seed, shard;                    // "" when not given; shard: I/N
  std::string report_folder, json;            // --report DIR, --json FILE or -
  bool require_gpu = false, list = false, quiet = false;
  std::vector<std::string> argv;  // for the report
};
int validate(const ValidateArgs& args);

struct ReportArgs {
  std::vector<std::string> files;
  bool accuracy = false;
};
int report_show(const ReportArgs& args);

int list(const std::string& what, bool json);
std::vector<std::string> listable();  // what list takes

int selftest(const std::string& filter, bool json);

int case_show(const std::string& id);
int case_dump(const std::string& id, const std::string& out, const std::string& backend);

// Shared by the subcommands.
Registry all_backends();
std::optional<reports::Device> current_device();
// Throws Error, naming the known backends, when a part of a comma separated glob matches none of them.
void require_known_backends(const std::vector<const Backend*>& known, const std::string& globs);

// Rows of text as columns padded to their widest, two spaces apart, or as a JSON array of objects.
struct Listing {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};
std::string as_text(const Listing& listing);
std::string as_json(const Listing& listing);

}  // namespace deltagauge::validate::cli
