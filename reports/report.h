// Report: what was judged, as data. Filled by validate and bench, written by one dumb writer a format. The JSON form is
// deltagauge.report/1, described by reports/schema/report-1.json; keys keep the order of the members here.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace deltagauge::reports {

enum class Outcome { pass, fail, skip, error };
std::string_view name(Outcome outcome);

struct Worst {
  std::vector<std::int64_t> index;  // of the element with the largest error over its budget
  double got = 0, want = 0;
};

// Whether metric a is worse than b: larger, where NaN is larger than any number.
bool worse(double a, double b);

// Where a tensor's error lies: the worst row ratio per head and block of rows. Blocks follow the packed tokens (rows of a
// state: its sequences).
struct ErrorMap {
  std::int64_t heads = 0, blocks = 0, rows_per_block = 0;
  std::vector<double> row_ratio;  // [heads, blocks]
};

struct TensorMetrics {
  double rel_l2 = 0;  // ||got - want|| / ||want||
  double max_abs = 0;
  double ulp_p50 = 0, ulp_p99 = 0, ulp_max = 0;  // distance in the stored dtype from the rounded right value
  double row_ratio = 0;         // worst row error over its budget; the gate is core thresholds (docs/numerics.md)
  double element_ratio = 0;     // worst element error over its share of the row budget
  double worst_row = 0;         // worst row error over max(row norm, median row norm)
  double bias = 0;              // mean error over rms error
  std::int64_t non_finite = 0;  // elements non-finite where the right value is finite
  std::optional<Worst> worst;
  double budget = 0;            // of the worst row
  std::string budget_from;      // "emulator chunk_sm80.plain + 0.5 u_bf16 |want|"
  std::optional<ErrorMap> map;  // kept when asked for
};

// What a stage's values spanned, in the format they are stored in.
struct StageRange {
  std::string dtype;
  double min_abs = 0, max_abs = 0;                      // smallest non-zero and largest finite magnitude before rounding
  std::int64_t values = 0, overflows = 0, flushes = 0;  // flushes: non-zero values that became zero or subnormal
};

// The device while a row was measured. Absent: NVML did not say.
struct Conditions {
  std::optional<double> sm_mhz, memory_mhz, temperature_c, power_w;
  std::vector<std::string> throttle;  // reasons seen, as NVML names them
};

// Times of one call, in seconds. A sample is the mean of calls back-to-back calls.
struct Timing {
  double min = 0, median = 0, mean = 0, p95 = 0;
  std::vector<double> samples;  // in the order of measuring
  std::int64_t calls = 1;
  bool settled = false;         // the noise criterion was met; otherwise the time limit ended it
  double flops = 0, bytes = 0;  // the least the op needs, from OpInfo
  double floor = 0;             // max(flops / peak, bytes / bandwidth) by the report's roofline; 0 without one
  double active = 1;            // part of the captured capacity in use (replay)
  Conditions conditions;

  double tb_s() const { return bytes / median * 1e-12; }
  double tflop_s() const { return flops / median * 1e-12; }
  double x_of_floor() const { return floor > 0 ? median / floor : 0; }
  double roofline_percent() const { return 100 * floor / median; }
};

// What the device reached in this run: a copy (bytes read plus written), and dense bf16 tensor-core products.
struct Roofline {
  double copy_tb_s = 0, tensor_tflop_s = 0;
};

// What ran when within a row. The spans of a row stand in the order in which they began; depth counts those that one lies
// in. A trace ties each "replay" to the "capture" before it and to the "judge" inside it.
struct Span {
  std::string name;  // "inputs", "run", "oracle", "judge", ...
  std::int64_t depth = 0;
  double start = 0, seconds = 0;                // start: since the row's own
  std::optional<std::int64_t> active_tokens{};  // of the layout that ran
  std::optional<double> device_seconds{};       // the part of it that the device measured
  std::string detail{}, reason{};               // detail: which replay, which layout; reason: why its verdict is no pass
};

// A smaller case that fails in the same way, and its tensors as a safetensors file.
struct ShrunkCase {
  std::string test, file;  // test: "case" in JSON
};

struct Result {
  std::string test;  // case id; "case" in JSON
  std::string name;  // from the config, may be empty
  std::string op, direction, backend, check;
  Outcome outcome = Outcome::error;
  std::string reason;  // why it failed, was skipped or broke; empty on a pass
  double seconds = 0;
  std::map<std::string, TensorMetrics> tensors;
  std::map<std::string, StageRange> ranges;    // by stage, where the check takes them
  std::map<std::string, std::string> digests;  // by output: 16 hex digits over its bits (core/digest.h), bench rows
  std::map<std::string, double> values;        // single figures that the check finds, by name
  std::optional<Timing> timing;                // bench and replay rows
  std::string repro;                           // a command line that shows it again; set on failures
  std::vector<Span> spans{};                   // kept when a trace is asked for
  std::optional<ShrunkCase> shrunk{};          // of --shrink; repro shows that case then
  std::string job{};                           // what the run judged as one to get this row; "": "CASE BACKEND CHECK"
};
std::string own_job(const Result& result);  // "CASE BACKEND CHECK"
std::string job_of(const Result& result);

struct ConfigFile {
  std::string path, sha256;
};
struct Device {
  std::string name;
  int sm = 0, sm_count = 0, driver = 0, runtime = 0, clock_mhz = 0, memory_mhz = 0;
};
struct Tool {
  std::string version, git_sha;
  bool dirty = false;
  std::string compiler;
  std::vector<std::string> cuda_archs;
};
struct Host {
  std::string os, cpu;
  int threads = 0;
};

struct Shard {
  std::int64_t part = 1, parts = 1;  // part in 1..parts
};
std::string to_string(const Shard& shard);  // "1/2"

struct Report {
  Tool tool;
  Host host;
  std::optional<Device> device;
  std::optional<Roofline> roofline;  // measured in the same run, where it took timings
  std::string started;               // UTC, ISO 8601; "" in reports of before there was one
  std::vector<std::string> argv;
  std::vector<ConfigFile> configs;
  std::optional<Shard> shard;  // of --shard
  std::int64_t jobs_left = 0;  // that an interrupt or a crash kept from being run
  std::vector<Result> results;

  struct Summary {
    std::int64_t judged = 0, passed = 0, failed = 0, skipped = 0, errors = 0;
  };
  Summary summary() const;
  // 2 jobs are left; else 1 a verdict failed; else 2 an error row; else 0 something was judged, and passed; else 3.
  int exit_status() const;
};

}  // namespace deltagauge::reports
