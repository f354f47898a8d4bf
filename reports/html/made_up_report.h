// A report and a history with something for every part of the page, for its tests. The numbers are made up.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "reports/html/html.h"
#include "reports/sample_report.h"

namespace deltagauge::reports::html {

// A text that would break out of any context it is pasted into.
inline const std::string kHostile =
    "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;\x01\x1b[31m\xff\xc3(\xe2\x80\xae)end";

inline ErrorMap made_up_map(std::int64_t heads, std::int64_t blocks, double worst) {
  ErrorMap map{heads, blocks, 64, {}};
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t b = 0; b < blocks; ++b) {
      const double wave = 0.5 + 0.3 * std::sin(0.2 * static_cast<double>(b) + static_cast<double>(h));
      map.row_ratio.push_back(h == heads / 2 && b > blocks / 2 ? worst * wave
                                                               : wave * (0.5 + static_cast<double>(b % 7) / 8));
    }
  return map;
}

inline Result timed(const std::string& test, const std::string& backend, const std::string& check, double median,
                    double floor, double active) {
  Result r;
  r.test = test, r.op = "gdn", r.direction = "fwd", r.backend = backend, r.check = check, r.outcome = Outcome::pass;
  Timing t = sample_timing();
  t.median = median, t.min = 0.98 * median, t.mean = 1.01 * median, t.p95 = 1.06 * median, t.floor = floor,
  t.active = active;
  r.timing = t;
  return r;
}

inline Report made_up_report() {
  Report report = sample_report();
  report.argv.push_back(kHostile);
  Result& failed = report.results[1];
  failed.ranges = {{"Ainv", {"tf32", 0x1p-20, 3.5, 4096, 0, 0}},
                   {"S", {"bf16", 0x1p-30, 96, 65536, 0, 0}},
                   {"P", {"f16", 0x1p-27, 70000, 65536, 3, 12}},
                   {"v_new", {"f16", 0x1p-12, 18, 65536, 0, 0}},
                   {"empty", {"f32", 0, 0, 0, 0, 0}}};
  failed.tensors["o"].map = made_up_map(16, 96, 4);
  failed.tensors["o"].map->row_ratio[300] = NAN;
  failed.tensors["final_state"] = failed.tensors["o"];
  failed.tensors["final_state"].map = made_up_map(4, 3, 90);
  failed.reason = "o: 2 values are not finite\nfinal_state: worst row error 45 of its budget";
  Result hostile = failed;
  hostile.test = hostile.name = hostile.reason = hostile.backend = hostile.repro = kHostile;
  hostile.tensors = {{kHostile, failed.tensors["o"]}};
  hostile.ranges = {{kHostile, {kHostile, NAN, INFINITY, 1, 1, 0}}};
  hostile.timing = sample_timing();
  report.results.push_back(hostile);
  Result& passed = report.results[0];
  passed.tensors["o"].map = made_up_map(80, 300, 1);

  const auto id = [](const std::string& lengths) {
    return "gdn/fwd/len=" + lengths + ",HK=16,HV=32,K=128,V=128/bf16/gate=mild/keys=iid/precise/seed=41";
  };
  for (const std::int64_t batch : {1, 4, 16})
    for (const std::int64_t length : {512, 1024, 2048, 4096, 8192}) {
      std::string lengths;
      for (std::int64_t n = 0; n < batch; ++n) lengths += (n ? "+" : "") + std::to_string(length);
      const double tokens = static_cast<double>(batch * length), floor = 2e-9 * tokens;
      report.results.push_back(timed(id(lengths), "cuda.gdn.chunk_sm80", "bench", 3.2 * floor + 9e-6, floor, 1));
      report.results.push_back(
          timed(id(lengths), "cuda.gdn.recurrent", "bench", 4e-8 * static_cast<double>(length) + 1.5 * floor, floor, 1));
    }
  for (const int one_in : {1, 2, 4, 16, 64}) {
    const double active = 1.0 / one_in;
    report.results.push_back(timed(id("64+64+64+64"), "cuda.gdn.chunk_sm80", "replay-time-1/" + std::to_string(one_in),
                                   12e-6 + 30e-6 * active, 4e-6 * active, active));
  }
  return report;
}

inline std::vector<HistoryPoint> made_up_history() {
  std::vector<HistoryPoint> history;
  for (int i = 0; i < 40; ++i)
    for (const std::string series :
         {"gdn/fwd/len=4096/cuda.gdn.chunk_sm80/bench", "gdn/fwd/len=512/cuda.gdn.recurrent/bench"}) {
      const bool faster = i >= 25 && series.find("4096") != std::string::npos;
      const double noise = 1 + 0.01 * std::sin(1.7 * i);
      history.push_back({std::string(39, 'c') + std::to_string(i % 10), "2026-02-" + std::to_string(10 + i % 19), series,
                         (faster ? 41e-6 : 52e-6) * noise, faster && i == 25});
    }
  history.push_back({kHostile, kHostile, kHostile, NAN, true});
  return history;
}

}  // namespace deltagauge::reports::html
