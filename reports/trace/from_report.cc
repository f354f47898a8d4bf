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

// The spans of one row, nested as they are, and what the device measured of them. A time that is none, or that leaves the
// span around it, is moved to the nearest that does not.
class SpanTracks {
 public:
  // start: of the row.
  SpanTracks(Trace& trace, const Result& result, TrackId backend, const std::string& device_name, std::int64_t start)
      : trace_(trace), result_(result), backend_(backend), device_name_(device_name), start_(start), at_(start) {}

  // Returns when the last of them ends.
  std::int64_t draw() {
    tie_flows();
    for (std::size_t i = 0; i < result_.spans.size(); ++i) {
      close_down_to(result_.spans[i].depth);
      open(i);
    }
    close_down_to(0);
    return at_;
  }
  const std::vector<FlowId>& of_failed_replays() const { return of_failed_replays_; }

 private:
  void tie_flows() {
    const std::size_t none = result_.spans.size();
    flows_.resize(none);
    std::size_t capture = none, replay = none;
    for (std::size_t i = 0; i < none; ++i) {
      const Span& span = result_.spans[i];
      if (replay != none && span.depth <= result_.spans[replay].depth) replay = none;
      if (span.name == "capture") {
        capture = i;
      } else if (span.name == "replay" && capture != none) {
        replay = i;
        const FlowId flow = trace_.new_flow();
        flows_[capture].push_back(flow);
        flows_[i] = {flow};
        if (!span.reason.empty()) of_failed_replays_.push_back(flow);
      } else if (replay != none && (span.name == "judge" || span.device_seconds)) {
        flows_[i] = flows_[replay];
      }
    }
    track_name_ = capture != none ? "replays" : "stages";
  }

  void close_down_to(std::int64_t depth) {
    for (; std::ssize(ends_) > std::max<std::int64_t>(depth, 0); ends_.pop_back()) {
      at_ = ends_.back();
      trace_.end(trace_.track(backend_, track_name_), at_);
    }
  }

  void open(std::size_t i) {
    const Span& span = result_.spans[i];
    const std::int64_t latest = ends_.empty() ? kLatest : ends_.back();
    at_ = std::clamp(later(start_, span.start), at_, latest);
    ends_.push_back(std::min(later(at_, span.seconds), latest));
    std::vector<Arg> args;
    if (!span.detail.empty()) args.push_back({"detail", span.detail});
    if (!span.reason.empty()) args.push_back({"reason", span.reason});
    if (span.active_tokens) {
      args.push_back({"active_tokens", *span.active_tokens});
      trace_.sample(trace_.counter(backend_, "active_tokens", "tokens"), at_, static_cast<double>(*span.active_tokens));
    }
    if (span.device_seconds) {
      const TrackId kernels = trace_.track(trace_.track(trace_.process(device_name_), result_.backend), "kernels");
      const std::int64_t begin = std::max(at_, kernels_end_);
      kernels_end_ = std::max(begin, std::min(later(begin, *span.device_seconds), ends_.back()));
      trace_.slice(kernels, begin, kernels_end_, {span.name, result_.check, {{"case", result_.test}}, flows_[i]});
      flows_[i].clear();
    }
    trace_.begin(trace_.track(backend_, track_name_), at_, {span.name, result_.check, std::move(args), flows_[i]});
  }

  Trace& trace_;
  const Result& result_;
  TrackId backend_;
  const std::string& device_name_;
  const char* track_name_ = "stages";
  std::int64_t start_, at_, kernels_end_ = 0;
  std::vector<std::int64_t> ends_;          // of the open spans
  std::vector<std::vector<FlowId>> flows_;  // by span
  std::vector<FlowId> of_failed_replays_;
};

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
    SpanTracks spans(trace_, result, track, device_name_, host_at_);
    const std::int64_t verdict = std::max({end, device_end, spans.draw()});
    if (result.outcome == Outcome::fail) {
      flows.insert(flows.end(), spans.of_failed_replays().begin(), spans.of_failed_replays().end());
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
