// A report with one result of every outcome, for the tests of the writers.
#pragma once
#include <cmath>

#include "reports/report.h"

namespace deltagauge::reports {

inline constexpr const char* kSampleCase =
    "gdn/fwd/len=63+65+1,HK=2,HV=4,K=128,V=128/bf16/gate=strong/keys=iid/precise/seed=41";

inline Timing sample_timing() {
  Timing t;
  t.samples = {12.5e-6, 12.25e-6, 12.75e-6};
  t.min = 12.25e-6, t.median = 12.5e-6, t.mean = 12.5e-6, t.p95 = 12.75e-6;
  t.calls = 20, t.settled = true, t.flops = 84541440, t.bytes = 1e6, t.floor = 2.5e-7;
  t.conditions.sm_mhz = 1980, t.conditions.power_w = 231.5;
  return t;
}

// Two replays of one capture on a device, the second of them wrong.
inline Result sample_replay() {
  Result row;
  row.test = kSampleCase, row.op = "gdn", row.direction = "fwd", row.backend = "cuda.gdn.chunk_sm80", row.check = "replay";
  row.outcome = Outcome::fail, row.reason = "replay 1 (partial after full): o: differs", row.seconds = 0x1p-4;
  row.repro = std::string("deltagauge replay --case '") + kSampleCase + "'";
  row.values = {{"replays", 2}, {"replays_failed", 1}};
  row.spans = {{.name = "inputs", .depth = 0, .start = 0, .seconds = 0x1p-10},
               {.name = "capture", .depth = 0, .start = 0x1p-10, .seconds = 0x1p-9}};
  for (int i = 0; i < 2; ++i) {
    const double start = 0x1p-8 * (i + 1);
    Span replay{.name = "replay", .depth = 0, .start = start, .seconds = 0x1p-9, .active_tokens = i ? 65 : 129};
    replay.detail = i ? "partial after full" : "full", replay.reason = i ? "o: differs" : "";
    row.spans.push_back(replay);
    row.spans.push_back({.name = "load", .depth = 1, .start = start, .seconds = 0x1p-12});
    row.spans.push_back(
        {.name = "run", .depth = 1, .start = start + 0x1p-12, .seconds = 0x1p-12, .device_seconds = 0x1p-13});
    row.spans.push_back({.name = "read back", .depth = 1, .start = start + 0x1p-11, .seconds = 0x1p-12});
    row.spans.push_back({.name = "judge", .depth = 1, .start = start + 0x1p-10, .seconds = 0x1p-10});
    row.spans.push_back({.name = "compare", .depth = 2, .start = start + 0x1p-10, .seconds = 0x1p-11});
  }
  return row;
}

inline Report sample_report() {
  Report report;
  report.tool = {"0.1.0", std::string(40, 'a'), true, "GNU 12.2.0", {"80", "90a"}};
  report.host = {"Debian GNU/Linux 12", "a processor", 2};
  report.device = Device{"NVIDIA H200", 90, 132, 13000, 13000, 1980, 3201};
  report.roofline = Roofline{4.25, 790.5};
  report.started = "2026-01-31T12:00:00+00:00";
  report.argv = {"deltagauge", "validate", "configs/gdn/smoke.json"};
  report.configs = {{"configs/gdn/smoke.json", std::string(64, '0')}};

  TensorMetrics good;
  good.rel_l2 = 3.4e-3, good.max_abs = 0x1p-7, good.ulp_p50 = 0, good.ulp_p99 = 1, good.ulp_max = 3;
  good.row_ratio = 0.78, good.element_ratio = 4.4, good.worst_row = 5e-3, good.bias = -0.01;
  good.worst = Worst{{70, 3, 17}, 0.1234375, 0.1234999};
  good.budget = 3.1e-4, good.budget_from = "emulator chunk64.io + 0.5 u_bf16 |want|";
  TensorMetrics bad = good;
  bad.row_ratio = INFINITY, bad.element_ratio = NAN, bad.bias = -INFINITY, bad.non_finite = 2;
  bad.worst = Worst{{128, 0, 5}, NAN, 1};
  good.map = ErrorMap{4, 3, 64, {0.1, 0.2, 0.3, 0.1, 0.2, 0.78, 0.1, 0, NAN, 0.5, 0.25, 0.125}};
  TensorMetrics nothing;

  report.results = {
      {kSampleCase,
       "qwen3-next",
       "gdn",
       "fwd",
       "cuda.gdn.chunk_sm80",
       "accuracy",
       Outcome::pass,
       "",
       0.25,
       {{"o", good}, {"final_state", nothing}},
       {{"Ainv", {"tf32", 0x1p-20, 3.5, 4096, 0, 2}}},
       {},
       {{"Ainv.headroom_bits", 126.2}, {"h0.largest_safe", INFINITY}},
       std::nullopt,
       ""},
      {kSampleCase,
       "qwen3-next",
       "gdn",
       "fwd",
       "cuda.gdn.recurrent",
       "accuracy",
       Outcome::fail,
       "o: 2 values are not finite",
       0.5,
       {{"o", bad}},
       {},
       {},
       {},
       std::nullopt,
       std::string("deltagauge validate --case '") + kSampleCase + "'"},
      {kSampleCase,
       "qwen3-next",
       "gdn",
       "fwd",
       "cuda.gdn.recurrent",
       "stages",
       Outcome::skip,
       "no taps",
       0,
       {},
       {},
       {},
       {},
       std::nullopt,
       ""},
      {"l2norm/fwd/len=3,HK=1,K=64/f32/precise/seed=1",
       "",
       "l2norm",
       "fwd",
       "reference.l2norm",
       "accuracy",
       Outcome::error,
       "x: expected 2 dimensions, got 3",
       0,
       {},
       {},
       {},
       {},
       std::nullopt,
       ""},
      {kSampleCase,
       "qwen3-next",
       "gdn",
       "fwd",
       "cuda.gdn.chunk_sm80",
       "graph-hot",
       Outcome::pass,
       "",
       1.5,
       {},
       {},
       {{"o", "0123456789abcdef"}, {"final_state", "fedcba9876543210"}},
       {},
       sample_timing(),
       ""},
  };
  report.results[0].note = "o is 0 in fast mode alone: 1 of 129 tokens, sequence 2 head 0 token 0";
  report.results[0].spans = {{.name = "inputs", .depth = 0, .start = 0, .seconds = 0.125},
                             {.name = "judge", .depth = 0, .start = 0.125, .seconds = 0.0625}};
  return report;
}

}  // namespace deltagauge::reports
