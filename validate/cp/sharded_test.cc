// The sharded recipe against the oracle, and on other routing of the same shape.
#include "validate/cp/sharded.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/inputs.h"
#include "kernels/cp/tables.h"
#include "kernels/cp/transport_local.h"
#include "oracle/oracle.h"
#include "reference/gdn.h"
#include "reference/staging.h"

namespace deltagauge::validate::cp {
namespace {

const StagedOp& find_op(std::string_view name) {
  static const StagedOps ops = all_ops();
  for (const auto& op : ops)
    if (op->name() == name) return *op;
  fail("no op ", name);
}

// Largest row sum of |Ainv| |I + A| over the chunks: what a triangular solve can amplify a rounding by.
double condition(const Tensor& Akk, const Tensor& Ainv) {
  const std::int64_t C = Akk.dim(2);
  double largest = 1;
  for (std::int64_t block = 0; block < Akk.dim(0) * Akk.dim(1); ++block)
    for (std::int64_t i = 0; i < C; ++i) {
      double sum = 0;
      for (std::int64_t t = 0; t <= i; ++t) {
        double row = 1;
        for (std::int64_t j = 0; j < t; ++j) row += std::fabs(Akk.load((block * C + t) * C + j));
        sum += std::fabs(Ainv.load((block * C + i) * C + t)) * row;
      }
      largest = std::max(largest, sum);
    }
  return largest;
}

double norm_of_rows(const Tensor& t, std::int64_t rows, std::int64_t width) {
  double sum = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    double square = 0;
    for (std::int64_t i = 0; i < width; ++i) square += std::pow(t.load(row * width + i), 2);
    sum += std::sqrt(square);
  }
  return sum;
}

TEST(Sharded, in_f64_every_table_and_segment_agrees_with_the_oracle_to_the_roundings_of_f64) {
  for (const char* axes : {"len=150+0+1+219,HK=2,HV=4,K=24,V=40/bf16/gate=strong/h0=normal=1",
                           "len=300,HK=1,HV=2,K=32,V=16/f16/gate=edge/h0=normal=1",
                           "len=90+200,HK=1,HV=2,K=32,V=16/bf16/gate=none/keys=rho=0.9/beta=near1",
                           "len=260,HK=1,HV=1,K=16,V=16/bf16/gate=mild/l2norm=on/beta=wide",
                           "len=130+70,HK=1,HV=2,K=16,V=16/bf16/gate=model/raw_gate=on/transform=bounded/h0=normal=1"}) {
    const Case c = parse_id(std::string("gdn/fwd/") + axes);
    const Tensors inputs = make_inputs(c);
    Problem p = c.problem;
    const Tensors want = oracle::answer(p, inputs, {.precision = oracle::Precision::dd}).outputs;
    p.io = p.state = DType::f64;
    const Tensors staged = reference::gdn_staged(p, inputs, reference::staging("chunk64.f64"), true, nullptr);
    // A segment of T tokens adds at most T (K + C + 8) roundings relative to the largest state and a fold another K + 1,
    // in the state and in the maps, whose columns are states too. Maps of norm <= 1 (beta |k|^2 <= 2) do not amplify what is
    // behind them, but for sqrt(K) between the norm of a map's rows and their own errors.
    const double K = static_cast<double>(p.K), V = static_cast<double>(p.V);
    double state = 1 + 2 * norm_of_rows(get(inputs, "v"), p.tokens(), p.HV * p.V);
    if (const Tensor* h0 = find(inputs, "initial_state")) state += norm_of_rows(*h0, 1, h0->numel());
    const double roundings = static_cast<double>(p.tokens()) * (K + 64 + 8) * 2 * 0x1p-53;
    const double bound =
        roundings * condition(get(staged, "Akk"), get(staged, "Ainv")) * state * std::sqrt(K) * (1 + std::sqrt(V));
    const auto documents = documents_of(p);
    for (std::int64_t world : {1, 3, 4})
      for (const auto& kind : kernels::cp::table_kinds())
        for (std::int64_t segment : {0, 64, 128}) {
          const auto plan =
              kernels::cp::plan(documents, kernels::cp::make_table(kind.name, {documents, world, -1, 5}), segment);
          const auto ranks =
              run_ranks(find_op("reference.cp.chunk64.f64"), p, inputs, plan, kernels::cp::caps_of(plan), false);
          const Tensors got = assemble(p, plan, ranks);
          for (const char* name : {"o", "final_state"})
            for (std::int64_t i = 0; i < get(want, name).numel(); ++i)
              ASSERT_LE(std::fabs(get(got, name).load(i) - get(want, name).load(i)), 2 * bound)
                  << axes << " " << kind.name << " " << world << " " << segment << " " << name << "[" << i << "]";
        }
  }
}

TEST(Sharded, routing_of_another_layout_in_the_same_caps_needs_no_other_shape) {
  const kernels::cp::Caps caps{12, 4, 6, 160, 0};
  const StagedOp& op = find_op("reference.cp.chunk_sm80.plain");
  Shape entry, summaries, o;
  for (const char* lengths : {"300", "37+51+40+120", "1+0+299"}) {
    const Case c = parse_id(std::string("gdn/fwd/len=") + lengths + ",HK=1,HV=2,K=32,V=16/bf16/gate=mild/seed=2");
    const Tensors inputs = make_inputs(c);
    const auto documents = documents_of(c.problem);
    const auto plan = kernels::cp::plan(documents, kernels::cp::make_table("zigzag", {documents, 2, -1, 0}), 64);
    const auto tight = run_ranks(op, c.problem, inputs, plan, kernels::cp::caps_of(plan), false);
    const auto roomy = run_ranks(op, c.problem, inputs, plan, caps, false);
    const Tensors a = assemble(c.problem, plan, tight), b = assemble(c.problem, plan, roomy);
    for (const auto& [name, tensor] : a) EXPECT_TRUE(bitwise_equal(tensor, get(b, name))) << lengths << " " << name;
    if (entry.empty())
      entry = roomy[0].entry.shape(), summaries = roomy[0].summaries.shape(), o = get(roomy[0].run, "o").shape();
    for (const RankAnswer& rank : roomy) {
      EXPECT_EQ(rank.entry.shape(), entry);
      EXPECT_EQ(rank.summaries.shape(), summaries);
      EXPECT_EQ(get(rank.run, "o").shape(), o);
    }
  }
}

TEST(Sharded, a_chain_of_canonical_segments_gives_the_bits_of_the_whole) {
  const Case c = parse_id("gdn/fwd/len=200+0+90+1,HK=1,HV=2,K=32,V=16/bf16/gate=mild/h0=normal=1/seed=2");
  const Tensors inputs = make_inputs(c);
  const auto documents = documents_of(c.problem);
  const reference::Staging& staging = reference::staging("chunk_sm80.plain");
  const auto plan = kernels::cp::plan(documents, {{{0, 291}}}, 64);
  const Tensors got = run_chained(staging, c.problem, inputs, plan);
  for (const auto& [name, tensor] : reference::run(c.problem, inputs, staging, false))
    EXPECT_TRUE(bitwise_equal(tensor, get(got, name))) << name;
}

TEST(Sharded, a_rank_refuses_the_routing_of_another) {
  const Case c = parse_id("gdn/fwd/len=100,HK=1,HV=1,K=16,V=16/bf16/seed=2");
  const Tensors inputs = make_inputs(c);
  const auto plan = kernels::cp::plan(documents_of(c.problem), {{{0, 50}}, {{50, 100}}}, 0);
  const auto routing = kernels::cp::routing(plan, 0, kernels::cp::caps_of(plan));
  const Span span = span_of(c.problem, inputs, plan.ranks[0], kernels::cp::caps_of(plan));
  const StagedOp& op = find_op("reference.cp.chunk64.f32");
  EXPECT_THROW(kernels::cp::run_local(2, [&](auto& transport) { op.rank(span, routing, transport, false); }), Error);
}

}  // namespace
}  // namespace deltagauge::validate::cp
