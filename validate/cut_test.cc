// Cutting a case: values and overrides stay with what remains.
#include "validate/cut.h"

#include <gtest/gtest.h>

#include "core/inputs.h"

namespace deltagauge::validate {
namespace {

const Case kCase = parse_id(
    "gdn/fwd/len=3+0+4+2,HK=2,HV=4,K=8,V=8,cap=11/bf16/h0=normal=1/v[1:5,0,*]=3/g[8,*]=-2/initial_state[2,0,*,*]=0/seed=5");

TEST(Cut, NothingCutIsTheSameCase) { EXPECT_EQ(to_id(cut(kCase, whole(kCase))), to_id(kCase)); }

TEST(Cut, OverridesFollowTheirRowsAndSequences) {
  Cut to = whole(kCase);
  to.sequences = {0, 2, 3};
  to.lengths = {2, 4, 2};
  EXPECT_EQ(to_id(cut(kCase, to)),
            "gdn/fwd/len=2+4+2,HK=2,HV=4,K=8,V=8,cap=10,ids=0+2+3/bf16/gate=mild/keys=iid/precise/h0=normal=1/"
            "v[1:4,0,*]=3/g[7,*]=-2/initial_state[1,0,*,*]=0/seed=5");
  to.sequences = {3};
  to.lengths = {1};
  to.HV = 2;
  EXPECT_EQ(cut(kCase, to).overrides, std::vector<Override>{});
}

TEST(Cut, OverridesOfPackedRowsStayWithTheirHeads) {
  const Case c = parse_id(
      "gdn_decode/fwd/len=1x3,HK=2,HV=4,K=8,V=4/h0=zero/slots=4/packed_qkv[2,8:17]=1/packed_qkv[0,33]=2/packed_qkv[1,*]=3");
  Cut to = whole(c);
  to.HK = 1, to.HV = 2, to.K = 4;  // q: 0:4, k: 4:8, v: 8:16
  EXPECT_EQ(cut(c, to).overrides, parse_id("gdn_decode/fwd/len=1x3,HK=1,HV=2,K=4,V=4/h0=zero/slots=4/packed_qkv[2,4]=1/"
                                           "packed_qkv[0,9]=2/packed_qkv[1,*]=3")
                                      .overrides);
}

TEST(Cut, ValuesOfWhatRemainsAreTheSame) {
  Cut to = whole(kCase);
  to.sequences = {2};
  to.lengths = {3};
  to.HV = 2, to.V = 4;
  const Tensors before = make_inputs(kCase), after = make_inputs(cut(kCase, to));
  for (std::int64_t t = 0; t < 3; ++t)
    for (std::int64_t h = 0; h < 2; ++h) {
      EXPECT_EQ(get(after, "g").at({t, h}), get(before, "g").at({t + 3, h}));
      for (std::int64_t d = 0; d < 4; ++d) EXPECT_EQ(get(after, "v").at({t, h, d}), get(before, "v").at({t + 3, h, d}));
      for (std::int64_t d = 0; d < 8; ++d) EXPECT_EQ(get(after, "k").at({t, h, d}), get(before, "k").at({t + 3, h, d}));
    }
  EXPECT_EQ(get(after, "initial_state").at({0, 1, 3, 7}), get(before, "initial_state").at({2, 1, 3, 7}));
}

}  // namespace
}  // namespace deltagauge::validate
