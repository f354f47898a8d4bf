// A report with one result of every outcome, for the tests of the writers.
#pragma once
#include <cmath>

#include "reports/report.h"

namespace deltagauge::reports {

inline constexpr const char* kSampleCase =
    "gdn/fwd/len=63+65+1,HK=2,HV=4,K=128,V=128/bf16/gate=strong/keys=iid/precise/seed=41";

inline Report sample_report() {
  Report report;
  report.tool = {"0.1.0", std::string(40, 'a'), true, "GNU 12.2.0", {"80", "90a"}};
  report.host = {"Debian GNU/Linux 12", "a processor", 2};
  report.device = Device{"NVIDIA H200", 90, 132, 13000, 13000, 1980, 3201};
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
       std::string("deltagauge validate --case '") + kSampleCase + "'"},
      {kSampleCase, "qwen3-next", "gdn", "fwd", "cuda.gdn.recurrent", "stages", Outcome::skip, "no taps", 0, {}, ""},
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
       ""},
  };
  return report;
}

}  // namespace deltagauge::reports
