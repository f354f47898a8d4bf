// The template's gate and write kinds, by what they must have in common.
#include "oracle/recurrence.h"

#include <gtest/gtest.h>

#include "core/inputs.h"
#include "oracle/gdn.h"

namespace deltagauge::oracle {
namespace {

template <class Real>
class Recurrence : public testing::Test {
 protected:
  // Outputs of one head, the first block of value rows, under an op.
  template <LinearOp kOp>
  std::vector<double> run(const Tile<Real>& tile) const {
    const auto tokens = static_cast<std::size_t>(tile.tokens);
    std::vector<Rows<Real>> S(static_cast<std::size_t>(tile.K)), v(tokens), u(tokens), o(tokens);
    for (std::size_t t = 0; t < tokens; ++t)
      for (int row = 0; row < Rows<Real>::kRows; ++row)
        v[t].set(row, Real(get(inputs, "v").at({static_cast<std::int64_t>(t), 0, row})));
    vectorised<Real>([&] { advance<Real, kOp>(tile, S.data(), v.data(), u.data(), o.data()); });
    std::vector<double> out;
    for (const Rows<Real>& at : o)
      for (int row = 0; row < Rows<Real>::kRows; ++row) out.push_back(static_cast<double>(at.get(row)));
    return out;
  }
  Tile<Real> tile() const {
    const Options options;
    Tile<Real> t;
    load_tile(Call{test.problem, inputs, options}, 0, test.problem.tokens(), 0, t);
    return t;
  }
  Case test = parse_id("gdn/fwd/len=20,HK=1,HV=1,K=12,V=16/bf16/gate=strong/seed=9");
  Tensors inputs = make_inputs(test);
};
using Reals = testing::Types<double, DoubleDouble>;
TYPED_TEST_SUITE(Recurrence, Reals);

TYPED_TEST(Recurrence, AChannelGateThatIsTheSameInEveryChannelIsAScalarGate) {
  Tile<TypeParam> scalar = this->tile(), channel = scalar;
  channel.alpha.clear();
  for (const TypeParam& alpha : scalar.alpha)
    channel.alpha.insert(channel.alpha.end(), static_cast<std::size_t>(scalar.K), alpha);
  EXPECT_EQ((this->template run<LinearOp{Gate::channel, Write::delta}>(channel)), this->template run<kGdn>(scalar));
}

TYPED_TEST(Recurrence, NoGateIsADecayOfOne) {
  Tile<TypeParam> ones = this->tile(), none = ones;
  for (TypeParam& alpha : ones.alpha) alpha = TypeParam(1.0);
  none.alpha.clear();
  EXPECT_EQ((this->template run<LinearOp{Gate::none, Write::delta}>(none)), this->template run<kGdn>(ones));
}

TYPED_TEST(Recurrence, APlainWriteSumsTheDecayedValues) {
  Tile<TypeParam> tile = this->tile();  // one key throughout, e0, and alpha 1/2: S[v, 0] = sum of v_t 2^(t' - t)
  for (std::size_t i = 0; i < tile.k.size(); ++i)
    tile.k[i] = tile.q[i] = TypeParam(i % static_cast<std::size_t>(tile.K) == 0 ? 1.0 : 0.0);
  for (TypeParam& alpha : tile.alpha) alpha = TypeParam(0.5);
  tile.scale = TypeParam(1.0);
  const std::vector<double> got = this->template run<LinearOp{Gate::scalar, Write::plain}>(tile);
  double want = 0;  // bf16 values and powers of two over 20 tokens: exact in double
  for (std::int64_t t = 0; t < tile.tokens; ++t) {
    want = want / 2 + get(this->inputs, "v").at({t, 0, 0});
    EXPECT_EQ(got[static_cast<std::size_t>(t * Rows<TypeParam>::kRows)], want) << t;
  }
}

TYPED_TEST(Recurrence, GivesTheSameBitsWithAndWithoutFma) {
  const Tile<TypeParam> tile = this->tile();
  const auto tokens = static_cast<std::size_t>(tile.tokens);
  std::vector<Rows<TypeParam>> S(static_cast<std::size_t>(tile.K)), v(tokens), u(tokens), o(tokens);
  for (std::size_t t = 0; t < tokens; ++t)
    for (int row = 0; row < Rows<TypeParam>::kRows; ++row)
      v[t].set(row, TypeParam(get(this->inputs, "v").at({static_cast<std::int64_t>(t), 0, row})));
  advance<TypeParam, kGdn>(tile, S.data(), v.data(), u.data(), o.data());
  const std::vector<double> want = this->template run<kGdn>(tile);
  for (std::size_t i = 0; i < want.size(); ++i) {
    const std::size_t rows = static_cast<std::size_t>(Rows<TypeParam>::kRows);
    EXPECT_EQ(static_cast<double>(o[i / rows].get(static_cast<int>(i % rows))), want[i]);
  }
}

}  // namespace
}  // namespace deltagauge::oracle
