// Calibration where samples are small and where the arithmetic is f32: right answers that round elsewhere or sum in another
// order stay within their budgets on tiny, concentrated and degenerate problems, and the floor that this needs lets no fault
// of an f32 kernel pass. The ordinary sizes, and the faults of 16-bit kernels, are in selftest_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "core/error.h"
#include "core/inputs.h"
#include "core/op.h"
#include "reference/faults.h"
#include "validate/checks/accuracy.h"
#include "validate/planted.h"
#include "validate/thresholds.h"

namespace deltagauge::validate {
namespace {

using reports::Outcome;

constexpr const char* kSettings[] = {
    "gate=strong/h0=normal=1",
    "gate=none/h0=zero",
    "gate=mild/keys=rho=0.9/h0=normal=1",
    "gate=strong/h0=normal=100",
    "gate=constant=-0.001/keys=repeated/beta=const=0.835/h0=zero",
    "gate=constant=-0.001/keys=alternating/beta=near1/h0=normal=1",
    "gate=none/keys=onehot/h0=normal=1",
    "gate=edge/h0=normal=1",
    "gate=model/h0=normal=1",
    "gate=mild/beta=tiny/h0=zero",
    "gate=none/beta=wide/h0=zero",
    "gate=mild/h0=normal=1/v=normal=0",
    "gate=mild/h0=normal=1/l2norm=on",
    "gate=model/raw_gate=on/h0=normal=1",
    "gate=mild/h0=normal=1/raw_gate=on/transform=bounded/l2norm=on",
};

struct Trial {
  SweepCase test;
  Context context;

  Trial(const std::string& sizes, const std::string& io, const std::string& axes, int seed)
      : test{.test = parse_id("gdn/fwd/" + sizes + "/" + io + "/" + axes + "/seed=" + std::to_string(seed)),
             .name = {},
             .note = {},
             .checks = {},
             .ceilings = {}},
        context(test, make_inputs(test.test), oracle::Precision::f64) {}
  const Problem& problem() const { return test.test.problem; }
  Tensors run(std::string_view staging) {
    return reference::run(problem(), context.inputs(), reference::staging(staging), false);
  }
};

// The worst ratios seen, printed so that the margins can be read.
struct Worst {
  double row = 0, element = 0;
  void see(const Verdict& verdict) {
    for (const auto& [name, m] : verdict.tensors) {
      row = std::max(row, m.row_ratio);
      element = std::max(element, m.element_ratio);
    }
  }
  void print(const char* what) const {
    std::cout << what << ": worst row " << row << " of " << kRowRatio << ", worst element " << element << " of "
              << kElementRatio << "\n";
  }
};

// The f32 recurrence as a GPU would sum it: `lanes` partial sums of fused products, folded in halves.
Tensors recurrence_in_lanes(const Problem& p, const Tensors& inputs, std::size_t lanes) {
  const auto q = to_f64(get(inputs, "q")), k = to_f64(get(inputs, "k")), v = to_f64(get(inputs, "v"));
  const auto g = to_f64(log_decays(p, inputs)), beta = to_f64(get(inputs, "beta"));
  const auto K = static_cast<std::size_t>(p.K), V = static_cast<std::size_t>(p.V), HV = static_cast<std::size_t>(p.HV);
  const auto HK = static_cast<std::size_t>(p.HK), group = HV / HK;
  const auto dot = [&](const float* a, const double* b, float scale) {
    std::vector<float> sums(lanes, 0);
    for (std::size_t i = 0; i < K; ++i) sums[i % lanes] = std::fma(a[i], static_cast<float>(b[i]) * scale, sums[i % lanes]);
    for (std::size_t width = lanes / 2; width > 0; width /= 2)
      for (std::size_t i = 0; i < width; ++i) sums[i] += sums[i + width];
    return sums[0];
  };
  Tensors out;
  for (const TensorSpec& spec : op_info(p.op).outputs(p)) out[spec.name] = Tensor(spec.dtype, spec.shape);
  const auto h0 = to_f64(get(inputs, "initial_state"));
  std::vector<float> S(h0.begin(), h0.end());
  const auto offsets = p.offsets();
  for (std::size_t n = 0; n < p.lengths.size(); ++n)
    for (auto t = static_cast<std::size_t>(offsets[n]); t < static_cast<std::size_t>(offsets[n + 1]); ++t)
      for (std::size_t h = 0; h < HV; ++h)
        for (std::size_t r = 0; r < V; ++r) {
          float* row = S.data() + ((n * HV + h) * V + r) * K;
          const double *key = k.data() + (t * HK + h / group) * K, *query = q.data() + (t * HK + h / group) * K;
          const float decay = std::exp(static_cast<float>(g[t * HV + h]));
          for (std::size_t i = 0; i < K; ++i) row[i] *= decay;
          const float u =
              static_cast<float>(beta[t * HV + h]) * (static_cast<float>(v[(t * HV + h) * V + r]) - dot(row, key, 1));
          for (std::size_t i = 0; i < K; ++i) row[i] = std::fma(u, static_cast<float>(key[i]), row[i]);
          out["o"].store(static_cast<std::int64_t>((t * HV + h) * V + r), dot(row, query, static_cast<float>(p.q_scale())));
        }
  for (std::size_t i = 0; i < S.size(); ++i) out["final_state"].store(static_cast<std::int64_t>(i), S[i]);
  return out;
}

constexpr const char* kSizes[] = {"len=1,HK=1,HV=2,K=64,V=64",  "len=2+1,HK=1,HV=1,K=64,V=64",
                                  "len=5,HK=1,HV=1,K=128,V=64", "len=9+1+1+33,HK=1,HV=1,K=64,V=128",
                                  "len=70,HK=1,HV=1,K=64,V=64", "len=17,HK=1,HV=1,K=16,V=8"};

TEST(Calibration, RightAnswersPassOnSmallAndDegenerateProblemsIn16Bits) {
  Worst worst;
  for (const char* sizes : kSizes)
    for (const char* axes : kSettings)
      for (const char* io : {"bf16", "f16"}) {
        Trial trial(sizes, io, axes, 7);
        for (const char* variant : {"chunk64.io", "chunk64.io.tc", "chunk64.f32", "recurrent.f32", "chunk_sm80.split"}) {
          const Verdict verdict = judge_outputs(trial.context, "chunk64.io", trial.run(variant));
          EXPECT_EQ(verdict.outcome, Outcome::pass) << variant << " on " << to_id(trial.test.test) << ": " << verdict.reason;
          worst.see(verdict);
        }
      }
  worst.print("16-bit outputs");
}

TEST(Calibration, RightIntermediatesPassInAnyAccumulation) {
  const PlantedBackend backend("tensor core", "chunk64.io", [](const Problem& p, const Tensors& inputs, bool taps) {
    return reference::run(p, inputs, reference::staging("chunk64.io.tc"), taps);
  });
  Worst worst;
  for (const char* sizes : {"len=1,HK=1,HV=2,K=64,V=64", "len=5+33,HK=1,HV=1,K=64,V=64", "len=130,HK=1,HV=1,K=64,V=64"})
    for (const char* axes : kSettings)
      for (const char* io : {"bf16", "f16"}) {
        Trial trial(sizes, io, axes, 7);
        const Verdict verdict = find_check("stages").run(trial.context, backend);
        EXPECT_EQ(verdict.outcome, Outcome::pass) << to_id(trial.test.test) << ": " << verdict.reason;
        worst.see(verdict);
      }
  worst.print("intermediates");
}

// Keys that share a direction: what is rounded once for all rows of a head moves them together, and one answer of the
// emulator is then one draw of few.
TEST(Calibration, ARatioPastOneIsTakenAgainstSeveralAnswers) {
  Trial trial("len=130+65+1,HK=2,HV=4,K=64,V=64", "f16", "gate=mild/keys=rho=0.999", 41);
  int past_one = 0;
  for (std::uint64_t draw = 11; draw < 19; ++draw) {
    reference::Staging other = reference::staging("chunk_sm90.plain");
    other.draw = draw;
    const Tensors got = reference::run(trial.problem(), trial.context.inputs(), other, false);
    Verdict one;
    judge_tensor("final_state", get(got, "final_state"), trial.context.output("chunk_sm90.plain", "final_state"), one);
    past_one += one.tensors.at("final_state").row_ratio > 1;
    const Verdict verdict = judge_outputs(trial.context, "chunk_sm90.plain", got);
    EXPECT_EQ(verdict.outcome, Outcome::pass) << verdict.reason;
    EXPECT_LE(verdict.tensors.at("final_state").row_ratio, 1);
  }
  EXPECT_GT(past_one, 0);
}

TEST(Calibration, RightAnswersPassInF32WhateverTheOrderOfSummation) {
  Worst worst;
  for (const char* sizes : kSizes)
    for (const char* axes : kSettings) {
      if (std::string_view(axes).ends_with("l2norm=on")) continue;  // the lanes take q and k as they are
      Trial trial(sizes, "f32", axes, 7);
      std::vector<Tensors> answers{trial.run("recurrent.f32"), trial.run("chunk64.f32"), trial.run("chunk64.f64")};
      for (const std::size_t lanes : {1, 8, 32})
        answers.push_back(recurrence_in_lanes(trial.problem(), trial.context.inputs(), lanes));
      for (const Tensors& answer : answers) {
        const Verdict verdict = judge_outputs(trial.context, "recurrent.f32", answer);
        EXPECT_EQ(verdict.outcome, Outcome::pass) << to_id(trial.test.test) << ": " << verdict.reason;
        worst.see(verdict);
      }
    }
  worst.print("f32 outputs");
}

TEST(Calibration, TheFloorLetsNoFaultOfAnF32KernelPass) {
  double weakest = HUGE_VAL;
  for (const char* axes :
       {"gate=strong/h0=normal=1", "gate=strong/h0=zero", "gate=mild/h0=normal=1/scale=1",
        "gate=mild/keys=rho=0.9/h0=normal=1", "gate=strong/h0=normal=100", "gate=model/raw_gate=on/h0=normal=1"}) {
    Trial trial("len=70+0+131+1,HK=2,HV=4,K=64,V=64", "f32", axes, 42);
    for (const reference::Fault& fault : reference::faults("gdn")) {
      if (!fault.shows(trial.problem())) continue;
      const Tensors got =
          reference::run_with_fault(trial.problem(), trial.context.inputs(), reference::staging("chunk64.f32"), fault);
      const Verdict verdict = judge_outputs(trial.context, "recurrent.f32", got);
      EXPECT_EQ(verdict.outcome, Outcome::fail) << fault.name << " on " << axes;
      Worst worst;
      worst.see(verdict);
      weakest = std::min(weakest, std::max(worst.row / kRowRatio, worst.element / kElementRatio));
    }
  }
  std::cout << "weakest fault in f32: " << weakest << " thresholds\n";
  EXPECT_GT(weakest, 1);
}

}  // namespace
}  // namespace deltagauge::validate
