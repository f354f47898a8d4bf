// The judging loop: case -> inputs -> oracle -> backend -> compare -> judge -> Report. Used by the deltagauge binary.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend.h"
#include "core/sweep.h"
#include "oracle/oracle.h"
#include "reports/report.h"
#include "validate/loop.h"

namespace deltagauge::validate {

struct CheckInfo {
  std::string_view name, summary;
};
std::span<const CheckInfo> checks();  // accuracy stages lattice guard determinism packing causal fast ladder.*

struct RunOptions {
  oracle::Precision oracle = oracle::Precision::automatic;
  std::vector<std::string> checks;       // empty: those each case asks for
  std::string backend = "*";             // glob; only backends that match this and the sweep's own glob run
  std::string filter = "*";              // glob over case ids and names
  std::string config;                    // for repro lines
  bool maps = false;                     // keep error maps of passed rows too
  bool spans = false;                    // keep what ran when, for a trace
  bool cuda_missing_is_failure = false;  // --require-gpu: a skip for want of a GPU becomes a failure
  std::string config_flags;              // for repro lines through a config or tensors: --set, --seed
  Loop loop{};                           // its jobs are the lines of list_sweep
};

// Runs every (case, backend, check) of the sweep and appends one Result each. Backends of another op (by the staging they
// declare) are left out. A backend that does not support a case gives a skip with its reason; an exception inside one gives
// an error row, and the rest goes on.
void run_sweep(const Sweep& sweep, const Registry& registry, const RunOptions& options, reports::Report& report);
// The same for one case on inputs that came from elsewhere (validate --tensors).
void run_on_inputs(const SweepCase& test, const Tensors& inputs, const Registry& registry, const RunOptions& options,
                   reports::Report& report);
// One job of them: the row, whatever happens.
reports::Result run_one(const SweepCase& test, const Backend& backend, std::string_view check, const RunOptions& options);
// What run_sweep would run, as "case backend check" lines, for --list.
std::vector<std::string> list_sweep(const Sweep& sweep, const Registry& registry, const RunOptions& options);

std::string shell_quoted(std::string_view text);  // as one word of a command line, for repro lines

// Whether a backend answers this op at all: the op of the staging it declares. One that answers another op makes no row.
bool serves(const Backend& backend, const Problem& problem);

// oracle.*, reference.* (recurrent, chunk, and as_kernel for every staging).
void add_cpu_backends(Registry& registry);
// cuda.*; without the CUDA half or without a GPU the backends are there all the same and unsupported() says why.
void add_cuda_backends(Registry& registry);
// cuda.gdn.VARIANT by itself, without what it promises the bits of. Throws Error naming the known variants.
std::unique_ptr<Backend> cuda_gdn(std::string_view variant);

// host.*: the same kernels on the CPU (kernels/host), in builds that have them. how: as host::parse_options
// (kernels/host/executor.h) reads it, or with mode=turns, so that a plan's runs take the modes in turn.
void add_host_backends(Registry& registry, std::string_view how);

// The judge judged. One row per (variant, regime, io dtype): planted faults must be caught, correct variants must pass.
struct SelftestRow {
  std::string variant, regime, io;
  bool fault = false;  // a planted fault; otherwise a correct variant
  bool caught = false;
  std::string check;                        // which check caught it (or all that passed)
  double row_ratio = 0, element_ratio = 0;  // the worst over outputs; 0 where no budget judged the row
  std::vector<std::string> peers;           // names of peers' fixed tolerances (peers.h) that would reject these outputs
};
struct Selftest {
  std::vector<SelftestRow> rows;
  std::int64_t faults = 0, killed = 0, correct = 0, passed = 0;
  bool ok() const { return killed == faults && passed == correct && faults > 0; }
};
Selftest selftest(std::string_view filter);  // glob over variants

}  // namespace deltagauge::validate
