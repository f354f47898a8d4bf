// gdn_decode in f32 against the ops that it is made of: the gate of reference/gate.h, then one token of the recurrence in
// f64.
#include "reference/gdn_decode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/inputs.h"
#include "reference/gdn.h"
#include "reference/staging.h"

namespace deltagauge::reference {
namespace {

constexpr const char* kSizes[] = {"len=1x5,HK=2,HV=4,K=64,V=16", "len=1x5,HK=1,HV=2,K=20,V=12",
                                  "len=1x5,HK=1,HV=1,K=200,V=7"};
constexpr const char* kPool = "/h0=normal=1/slots=9/idx=holes=3/has=mixed/seed=2";

// The same call through gdn in f64: q, k normalised there, g and beta as numbers.
Tensors by_gdn(const Problem& p, const Tensors& inputs) {
  Problem gdn = p;
  gdn.op = "gdn";
  gdn.l2norm = Switch::on;
  gdn.io = gdn.state = gdn.gate_dtype = gdn.beta_dtype = DType::f64;
  Tensors in{{"initial_state", cast(get(inputs, "initial_state"), DType::f64)},
             {"q", Tensor(DType::f64, {p.sequences(), p.HK, p.K})},
             {"k", Tensor(DType::f64, {p.sequences(), p.HK, p.K})},
             {"v", Tensor(DType::f64, {p.sequences(), p.HV, p.V})},
             {"g", Tensor(DType::f64, {p.sequences(), p.HV})},
             {"beta", Tensor(DType::f64, {p.sequences(), p.HV})}};
  const Tensor& packed = get(inputs, "packed_qkv");
  for (std::int64_t n = 0; n < p.sequences(); ++n) {
    std::int64_t at = n * packed.dim(1);
    for (const char* name : {"q", "k", "v"}) {
      Tensor& section = in.at(name);
      const std::int64_t width = section.dim(1) * section.dim(2);
      for (std::int64_t i = 0; i < width; ++i) section.store(n * width + i, packed.load(at + i));
      at += width;
    }
    for (std::int64_t h = 0; h < p.HV; ++h) {
      const double y = get(inputs, "raw_gate").at({n, h}) + get(inputs, "dt_bias").at({h});
      in.at("g").set({n, h},
                     -std::exp(get(inputs, "A_log").at({h})) * (std::max(y, 0.0) + std::log1p(std::exp(-std::fabs(y)))));
      const double beta = 1 / (1 + std::exp(-get(inputs, "raw_beta").at({n, h})));
      in.at("beta").set({n, h}, p.neg_eigval == Switch::on ? 2 * beta : beta);
    }
  }
  return gdn_recurrent(gdn, in, Precision::f64);
}

// A value row's error is a few of K + 64 roundings of f32 of its largest terms, which are below the norms of what it is made
// of.
TEST(GdnDecode, IsOneTokenOfGdnBehindItsTransforms) {
  for (const std::string size : kSizes)
    for (const char* axes :
         {"/f32/gate=mild", "/f32/gate=model/beta=wide/neg_eigval=on", "/f32/gate=strong/kscale=0.001/fast"}) {
      const Case c = parse_id("gdn_decode/fwd/" + size + axes + kPool);
      const Problem& p = c.problem;
      const Tensors inputs = make_inputs(c), got = run(p, inputs, staging("gdn_decode.f32"), false),
                    want = by_gdn(p, inputs);
      const double unit = (static_cast<double>(p.K) + 64) * 0x1p-24;
      const auto slots = p.state_indices();
      for (std::int64_t row = 0; row < p.sequences() * p.HV * p.V; ++row) {
        const std::int64_t n = row / (p.HV * p.V), slot = slots[static_cast<std::size_t>(n)];
        const double o = get(got, "o").load(row), right = get(want, "o").load(row);
        if (slot <= 0) {
          EXPECT_EQ(o, 0) << to_id(c);
          continue;
        }
        double norm = 0;  // of the row of S', of which o is a product with a query no longer than 1
        const std::int64_t first = (slot * p.HV * p.V + row % (p.HV * p.V)) * p.K;
        for (std::int64_t i = first; i < first + p.K; ++i) norm += std::pow(get(want, "final_state").load(i), 2);
        norm = 4 * std::sqrt(norm) + 4;  // and of S and v before, which are N(0, 1)
        EXPECT_LE(std::fabs(o - right), unit * norm * std::sqrt(static_cast<double>(p.K)) * p.q_scale()) << to_id(c);
        for (std::int64_t i = first; i < first + p.K; ++i)
          EXPECT_LE(std::fabs(get(got, "final_state").load(i) - get(want, "final_state").load(i)), unit * norm) << to_id(c);
      }
    }
}

// What a slot held does not matter where alpha is 0, infinities included, and where it is not read.
TEST(GdnDecode, AWipedStateLeavesNothing) {
  const Case c =
      parse_id("gdn_decode/fwd/len=1x2,HK=1,HV=1,K=8,V=4/f32/gate=mild/h0=normal=1/slots=3/raw_gate[*,*]=inf/seed=1");
  Tensors inputs = make_inputs(c);
  const Tensors before = gdn_decode(c.problem, inputs);
  Tensor& pool = inputs.at("initial_state");
  for (std::int64_t i = pool.numel() / 3; i < pool.numel(); ++i) pool.store(i, INFINITY);
  const Tensors after = gdn_decode(c.problem, inputs);
  EXPECT_TRUE(bitwise_equal(get(before, "o"), get(after, "o")));
  EXPECT_TRUE(bitwise_equal(rows(get(before, "final_state"), 1, 2), rows(get(after, "final_state"), 1, 2)));
}

}  // namespace
}  // namespace deltagauge::reference
