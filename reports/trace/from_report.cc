#include "reports/trace/from_report.h"

#include <algorithm>
#include <cmath>

namespace deltagauge::reports::trace {
namespace {

constexpr std::int64_t kLatest = std::int64_t{1} << 53;  // ns; a report's seconds may be any number
constexpr std::size_t kMostSamples = 100;                // drawn of a row, evenly over what was measured
constexpr std::string_view kErrorCategory = "machinery.error";

std::int64_t later(std::int64_t at, double seconds) {
  const double ns = std::round(seconds * 1e9);
  if (!(ns > 0)) return at;
  return at + static_cast<std::int64_t>(std::min(ns, static_cast<double>(kLatest - at)));
}

double worst_row_ratio(const Result& result) {
  double worst = 0;
  for (const auto& [name, metrics] : result.tensors) {
    if (worse(metrics.row_ratio, worst)) worst = metrics.row_ratio;
  }
  return worst;
}

std::string title(const Result& result) {
  return (result.name.empty() ? result.op + " " + result.direction : result.name) + ": " + result.check;
}

std::vector<Arg> args_of(const Result& result) {
  std::vector<Arg> args = {{"case", result.test}, {"outcome", std::string(name(result.outcome))}};
  if (!result.reason.empty()) args.push_back({"reason", result.reason});
  if (!result.repro.empty()) args.push_back({"repro", result.repro});
  for (const auto& [tensor, metrics] : result.tensors) {
    args.push_back({tensor + ".row_ratio", metrics.row_ratio});
    args.push_back({tensor + ".rel_l2", metrics.rel_l2});
  }
  for (const auto& [tensor, digest] : result.digests) args.push_back({tensor + ".digest", digest});
  return args;
}

std::vector<Arg> args_of(const Timing& timing, const std::string& test) {
  return {{"case", test},
          {"median_s", timing.median},
          {"min_s", timing.min},
          {"mean_s", timing.mean},
          {"p95_s", timing.p95},
          {"calls", timing.calls},
          {"settled", timing.settled},
          {"x_of_floor", timing.x_of_floor()},
          {"active", timing.active}};
}

class Timeline {
 public:
  explicit Timeline(const Report& report)
      : host_(trace_.process("host")), device_name_(report.device ? report.device->name : "device") {}

  void add(const Result& result) {
    const TrackId track = trace_.track(host_, result.backend);
    const std::int64_t end = later(host_at_, result.seconds);
    std::vector<FlowId> flows;
    if (result.timing) flows.push_back(trace_.new_flow());
    trace_.begin(track, host_at_, {title(result), result.check, args_of(result), flows});
    if (!result.tensors.empty()) {
      trace_.sample(trace_.counter(track, "row_ratio", "x budget"), host_at_, worst_row_ratio(result));
    }
    const std::int64_t device_end = result.timing ? add(result, *result.timing, flows) : end;
    const std::int64_t verdict = std::max(end, device_end);
    if (result.outcome == Outcome::fail) {
      trace_.failure(track, verdict, result.test, result.reason, flows);
    } else if (result.outcome == Outcome::error) {
      trace_.instant(track, verdict,
                     {"error", std::string(kErrorCategory), {{"case", result.test}, {"reason", result.reason}}, {}});
    }
    trace_.end(track, verdict);
    host_at_ = verdict;
  }

  Trace take() { return std::move(trace_); }

 private:
  // The row on the device, from the moment its host slice begins; returns when it ends.
  std::int64_t add(const Result& result, const Timing& timing, const std::vector<FlowId>& flows) {
    const TrackId device = trace_.process(device_name_);
    const TrackId rows = trace_.track(device, result.backend), samples = trace_.track(rows, "samples");
    const CounterId time = trace_.counter(rows, "time of a call", "us");
    trace_.begin(rows, host_at_, {title(result), result.check, args_of(timing, result.test), flows});
    add_counters(device, rows, timing);
    std::int64_t at = host_at_;
    const std::size_t step = (timing.samples.size() + kMostSamples - 1) / kMostSamples;
    for (std::size_t i = 0; i < timing.samples.size(); i += step) {
      const double sample = timing.samples[i];
      const std::int64_t end = later(at, sample * static_cast<double>(timing.calls));
      trace_.slice(samples, at, end, {std::to_string(timing.calls) + " calls", "sample", {{"call_s", sample}}, {}});
      trace_.sample(time, at, sample * 1e6);
      at = end;
    }
    trace_.end(rows, at);
    return at;
  }

  void add_counters(TrackId device, TrackId rows, const Timing& timing) {
    trace_.sample(trace_.counter(rows, "bandwidth", "TB/s"), host_at_, timing.tb_s());
    trace_.sample(trace_.counter(rows, "compute", "TFLOP/s"), host_at_, timing.tflop_s());
    trace_.sample(trace_.counter(rows, "roofline", "%"), host_at_, timing.roofline_percent());
    const Conditions& now = timing.conditions;
    const auto sample = [&](const char* what, const char* unit, const std::optional<double>& value) {
      if (value) trace_.sample(trace_.counter(device, what, unit), host_at_, *value);
    };
    sample("SM clock", "MHz", now.sm_mhz);
    sample("memory clock", "MHz", now.memory_mhz);
    sample("temperature", "C", now.temperature_c);
    sample("power", "W", now.power_w);
    for (const std::string& reason : now.throttle) {
      trace_.instant(trace_.track(device, "throttle"), host_at_, {reason, "throttle", {}, {}});
    }
  }

  Trace trace_;
  TrackId host_;
  std::string device_name_;
  std::int64_t host_at_ = 0;
};

}  // namespace

Trace trace_of(const Report& report) {
  Timeline timeline(report);
  for (const Result& result : report.results) timeline.add(result);
  return timeline.take();
}

}  // namespace deltagauge::reports::trace
