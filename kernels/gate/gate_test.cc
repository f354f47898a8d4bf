// gate on a device: what the checks of validate do not reach. Comparisons are bit for bit, or against limits of the exact
// function.
#include "kernels/gate/gate.h"

#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "kernels/runtime/graph.h"
#include "kernels/runtime/testing.h"

namespace deltagauge::kernels::gate {
namespace {

using namespace runtime;

constexpr float kInf = std::numeric_limits<float>::infinity();

class Gate : public GpuTest {};

// g of f32 rows [T, HV]; dt_bias is zero.
std::vector<float> run(Args args, std::span<const float> x, std::span<const float> A_log) {
  const Stream stream;
  const auto heads = static_cast<std::size_t>(args.HV);
  Buffer on_x(x.size_bytes()), on_A(heads * 4), bias(heads * 4), g(x.size_bytes());
  on_x.upload(x.data(), x.size_bytes(), stream);
  if (!A_log.empty()) on_A.upload(A_log.data(), A_log.size_bytes(), stream);
  bias.fill(0, stream);
  args.io = DType::f32;
  args.T = static_cast<std::int64_t>(x.size() / heads);
  args.x = on_x.as();
  args.A_log = A_log.empty() ? nullptr : on_A.as<float>();
  args.dt_bias = bias.as<float>();
  args.g = g.as<float>();
  Graph graph(stream, [&] { fwd(args, stream.get()); });  // captured: it neither allocates nor waits
  graph.launch(stream);
  std::vector<float> result(x.size());
  g.download(result.data(), g.bytes(), stream);
  return result;
}

const std::vector<float> kRaw{-1e30f, -1e4f, -104,  -88, -20,   -1, -1e-30f, -0.0f, 0,
                              1e-30f, 1,     19.9f, 20,  20.1f, 87, 88,      89,    1e4f};

TEST_F(Gate, WithoutALogGivesTheBitsOfALogZero) {
  const std::vector<float> zero{0};
  for (const Transform transform : {Transform::softplus, Transform::bounded})
    for (const bool fast : {false, true}) {
      const Args args{.HV = 1, .transform = transform, .fast_math = fast};
      const auto absent = run(args, kRaw, {}), one = run(args, kRaw, zero);
      for (std::size_t i = 0; i < kRaw.size(); ++i)
        EXPECT_EQ(std::bit_cast<std::uint32_t>(absent[i]), std::bit_cast<std::uint32_t>(one[i])) << "x = " << kRaw[i];
    }
}

TEST_F(Gate, SoftplusIsExactWhereItSaturates) {
  for (const bool fast : {false, true}) {
    const auto g = run({.HV = 1, .fast_math = fast}, kRaw, {});
    for (std::size_t i = 0; i < kRaw.size(); ++i) {
      EXPECT_LE(g[i], 0.0f) << "x = " << kRaw[i];
      if (kRaw[i] <= -1e4f) {  // exp(x) is far below the smallest subnormal
        EXPECT_EQ(g[i], 0.0f);
      }
      if (kRaw[i] >= 87) {  // exp(-x) is far below half an ulp of x
        EXPECT_EQ(g[i], -kRaw[i]);
      }
    }
  }
}

// exp(A_log) overflows from A_log = 88.73 on.
TEST_F(Gate, AnOverflowingScaleSaturatesAndIsNeverNaN) {
  for (const bool fast : {false, true})
    for (const float A_log : {50.0f, 88.0f, 89.0f, 100.0f, 1000.0f}) {
      const std::vector<float> A{A_log};
      const auto bounded = run({.HV = 1, .transform = Transform::bounded, .lower_bound = -5, .fast_math = fast}, kRaw, A);
      const auto softplus = run({.HV = 1, .fast_math = fast}, kRaw, A);
      for (std::size_t i = 0; i < kRaw.size(); ++i) {
        const float x = kRaw[i];
        if (x == 0) {
          EXPECT_EQ(bounded[i], -2.5f) << "A_log = " << A_log;
        }
        if (x >= 1) {
          EXPECT_EQ(bounded[i], -5.0f) << "A_log = " << A_log;
        }
        if (x <= -1) {
          EXPECT_EQ(bounded[i], 0.0f) << "A_log = " << A_log;
        }
        EXPECT_TRUE(bounded[i] >= -5 && bounded[i] <= 0) << "x = " << x << ", A_log = " << A_log;
        EXPECT_TRUE(softplus[i] <= 0) << "x = " << x << ", A_log = " << A_log;
        if (x >= 1 && A_log >= 89) {  // softplus(1) exp(89) = 5.9e38 is past the largest f32
          EXPECT_EQ(softplus[i], -kInf);
        }
        if (x <= -1e4f) {
          EXPECT_EQ(softplus[i], 0.0f);
        }
        if (x == -88 && A_log <= 100) {  // exp(A_log - 88) is far from the largest f32
          EXPECT_TRUE(std::isfinite(softplus[i])) << "A_log = " << A_log;
        }
      }
    }
}

// A row is read one by one, or eight at a time where HV is a multiple of 8: the element must not notice.
TEST_F(Gate, ElementsReadOneByOneGiveTheBitsOfElementsReadInPacks) {
  constexpr std::size_t kHeads = 8;
  std::vector<float> wide, A_wide(kHeads, 0.5f);
  for (const float x : kRaw) wide.insert(wide.end(), kHeads, x);
  const std::vector<float> A{0.5f};
  for (const bool fast : {false, true}) {
    const auto narrow = run({.HV = 1, .fast_math = fast}, kRaw, A);
    const auto packs = run({.HV = kHeads, .fast_math = fast}, wide, A_wide);
    for (std::size_t i = 0; i < wide.size(); ++i)
      EXPECT_EQ(std::bit_cast<std::uint32_t>(packs[i]), std::bit_cast<std::uint32_t>(narrow[i / kHeads]))
          << "x = " << wide[i];
  }
}

}  // namespace
}  // namespace deltagauge::kernels::gate
