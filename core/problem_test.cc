#include "core/problem.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/op.h"

namespace deltagauge {
namespace {

TEST(CaseId, IsExactBothWays) {
  for (const char* id : {
           "gdn/fwd/len=63+65+1,HK=16,HV=32,K=128,V=128/bf16/gate=strong/keys=iid/precise/seed=41",
           "gdn/fwd/len=4096x8,HK=1,HV=1,K=64,V=64/f16/gate=constant=-5.914/keys=rho=0.9/fast/beta=const=0.835/"
           "h0=normal=100/seed=0",
           "gdn/fwd/len=0+5,HK=2,HV=4,K=96,V=192,cap=70,ids=3+1/f32/gate=none/keys=iid/precise/data=lattice/scale=1/seed=7",
           "gdn/fwd/len=40,HK=1,HV=1,K=64,V=64/bf16/gate=mild/keys=iid/precise/l2norm=on/final=off/g[7,*]=-89/k[0:3,0,5]=1/"
           "seed=1",
           "gdn_decode/fwd/len=1x5,HK=2,HV=4,K=64,V=32,cap=8/bf16/gate=model/keys=iid/precise/h0=normal=1/gdtype=bf16/"
           "slots=8/"
           "slot_pad=3/idx=holes=1/has=mixed/neg_eigval=on/packed_qkv[0,3]=1/seed=4",
           "l2norm/fwd/len=5,HK=3,K=60/f16/precise/seed=2",
           "gdn/fwd/len=40,HK=1,HV=1,K=64,V=64/bf16/gate=mild/keys=iid/precise/raw_gate=on/seed=1",
           "gdn/fwd/len=40,HK=1,HV=2,K=64,V=64/f16/gate=model/keys=iid/fast/gdtype=bf16/l2norm=on/raw_gate=on/"
           "transform=bounded/lb=-4/a_log=off/raw_gate[7,*]=-89/dt_bias[1]=0.5/seed=1",
           "gate/fwd/len=9,HV=4,K=64/bf16/fast/transform=bounded/per=channel/lb=-4/a_log=off/seed=3",
       }) {
    std::string text = id;
    if (text.find("data=lattice") != std::string::npos) text = to_id(parse_id(text));
    EXPECT_EQ(to_id(parse_id(text)), text);
    EXPECT_EQ(parse_id(to_id(parse_id(text))), parse_id(text));
  }
}

TEST(CaseId, FillsDocumentedDefaults) {
  const Case c = parse_id("gdn/fwd/len=5");
  EXPECT_EQ(c.problem.HK, 1);
  EXPECT_EQ(c.problem.K, 64);
  EXPECT_EQ(c.problem.q_scale(), 0.125);
  EXPECT_EQ(to_string(c.problem.gate), "mild");
  EXPECT_EQ(c.problem.raw_gate, Switch::off);
  EXPECT_EQ(parse_id("gdn/fwd/len=5/raw_gate=on"), parse_id("gdn/fwd/len=5/raw_gate=on/transform=softplus/lb=-5/a_log=on"));
  EXPECT_EQ(c.seed, 0u);
}

TEST(CaseId, RefusesInWords) {
  const auto message = [](const char* id) -> std::string {
    try {
      parse_id(id);
    } catch (const Error& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message("gdx/fwd/len=1"), "op: expected one of gdn gdn_decode l2norm gate, got 'gdx'");
  EXPECT_EQ(message("gdn_decode/fwd/len=1+2/h0=zero/slots=3"),
            "len: expected one token a sequence for op gdn_decode, got 1+2");
  EXPECT_EQ(message("gdn_decode/fwd/len=1/h0=zero"),
            "slots: expected a pool of at least 2 slots for op gdn_decode, got slots=0");
  EXPECT_EQ(message("gdn/fwd/len=-1"), "len: expected an integer in [0, 1099511627776], got '-1'");
  EXPECT_EQ(message("gdn/fwd/len=1,HK=2,HV=3"), "HV: expected a multiple of HK = 2, got 3");
  EXPECT_EQ(message("gdn/fwd/len=1/gate=constant=3"), "gate=constant: expected a number in [-inf, 0], got 3");
  EXPECT_EQ(message("gdn/fwd/len=1/keys=rho"), "keys=rho: needs a number, as in keys=rho=0.5");
  EXPECT_EQ(message("gdn/fwd/len=1/bf17"), "io: expected one of bf16 f16 f32, got 'bf17'");
  EXPECT_EQ(message("gdn/fwd/len=1/f64"), "io: expected one of bf16 f16 f32, got 'f64'");
  EXPECT_EQ(message("gdn/fwd/len=1/g[1]=x"), "override g[1]=x: expected a number, got 'x'");
  EXPECT_EQ(message("gdn/fwd/len=1,K=65537"), "K: expected an integer in [1, 65536], got '65537'");
  EXPECT_EQ(message("gdn/fwd/len=1,V=0"), "V: expected an integer in [1, 65536], got '0'");
  EXPECT_EQ(message("gdn/fwd/len=8/v[5:3,0,0]=1"), "override v[5:3,0,0]=1: expected a range a:b with a < b, got '5:3'");
  EXPECT_EQ(message("gdn/fwd/len=8/v[3:3,0,0]=1"), "override v[3:3,0,0]=1: expected a range a:b with a < b, got '3:3'");
  EXPECT_EQ(message("gdn/fwd/len=1/state=f16"), "state: expected one of f32 bf16, got 'f16'");
  EXPECT_EQ(message("gdn/fwd/len=1/g[1:2:3,0]=0"),
            "override g[1:2:3,0]=0: expected a number, a range a:b or *, got '1:2:3'");
  EXPECT_EQ(message("gdn/fwd/len=1/\x1b[0]=0"), "override: expected a tensor's name before [, got '\x1b'");
  EXPECT_EQ(message("gdn/fwd/len=1099511627776x16777216"),
            "len: expected at most 1099511627776 tokens, got 1099511627776x16777216");
  EXPECT_EQ(message("gdn/fwd/len=2147483648"),
            "len: expected at most 2147483647 packed tokens (cu_seqlens is int32), got 2147483648");
  EXPECT_EQ(message("gdn/fwd/len=2147483648/layout=dense"), "accepted");
  EXPECT_EQ(message("gdn/fwd/len=1/scale=1e308"), "scale: expected 0 or a positive number that f32 holds, got 1e+308");
  EXPECT_EQ(message("gdn/fwd/len=1/scale=1e-60"), "scale: expected 0 or a positive number that f32 holds, got 1e-60");
  EXPECT_EQ(message("gate/fwd/len=1/lb=-1e39"), "lb: expected a number <= 0 that f32 holds, got -1e+39");
  EXPECT_EQ(message("gdn/fwd/len=1/raw_gate=softplus"), "raw_gate: expected one of off on, got 'softplus'");
  EXPECT_EQ(message("gdn/fwd/len=1/raw_gate=on/transform=relu"), "transform: expected softplus or bounded, got 'relu'");
  EXPECT_EQ(message("gdn/fwd/len=1/raw_gate=on/transform=bounded/lb=1"), "lb: expected a number <= 0 that f32 holds, got 1");
  for (const std::string axis : {"transform=bounded", "lb=-4", "a_log=off"})
    EXPECT_EQ(message(("gdn/fwd/len=1/" + axis).c_str()),
              axis.substr(0, axis.find('=')) + ": expected raw_gate=on beside it, since g is no raw gate, got raw_gate=off");
  EXPECT_EQ(message("gdn/fwd/len=1/raw_gate=on/transform=bounded/lb=-1/gate=constant=-2"),
            "gate=constant: expected a number in [-1, 0], which transform=bounded reaches, got -2");
  EXPECT_EQ(message("gdn/fwd/len=1/raw_gate=on/transform=bounded/data=lattice/scale=1/gate=edge"),
            "data=lattice: expected gate none with transform=bounded, whose gates end at lb, got edge");
  EXPECT_EQ(message("gdn/bwd/len=1"), "direction: expected fwd, got bwd (op gdn has no backward)");
  for (const char* id :
       {"", "gdn", "gdn/fwd/", "gdn/fwd/len=", "gdn/fwd/len=1x", "gdn/fwd/len=1/colour=red", "gdn/fwd/len=1+2/layout=dense",
        "gdn/fwd/len=1/seed=1/seed=2", "gdn/fwd/len=10,cap=5", "l2norm/fwd/len=1,HV=4", "gdn/fwd/len=1/data=lattice",
        "gdn/fwd/len=1x99999999", "gdn/fwd/len=1/scale=nan", "gdn/fwd/len=1/[1]=2"})
    EXPECT_NE(message(id), "accepted") << id;
}

TEST(OpInfo, CountsTheArithmeticAndTrafficOfTheRooflineTable) {
  const Problem p = parse_id("gdn/fwd/len=32768,HK=16,HV=32,K=128,V=128/bf16").problem;
  EXPECT_EQ(op_info("gdn").flops(p), 163840.0 * 32768 * 32);
  const double per_token = 2.0 * (2 * 16 * 128 + 2 * 32 * 128) + 2 * 4 * 32;
  EXPECT_EQ(op_info("gdn").bytes(p), per_token * 32768 + 4.0 * 32 * 128 * 128 + 4.0 * 2);
}

TEST(OpInfo, NamesARawGateByWhatItTakes) {
  const auto names = [](const char* axes) {
    std::string all;
    const Problem p = parse_id(std::string("gdn/fwd/len=3,HV=2/gdtype=bf16") + axes).problem;
    for (const TensorSpec& spec : op_info("gdn").inputs(p))
      all += spec.name + std::string(name(spec.dtype)) + to_string(spec.shape) + " ";
    return all.substr(all.find("v"));
  };
  EXPECT_EQ(names(""), "vbf16[3, 2, 64] gbf16[3, 2] betaf32[3, 2] cu_seqlensi32[2] ");
  EXPECT_EQ(names("/raw_gate=on"),
            "vbf16[3, 2, 64] raw_gatebf16[3, 2] betaf32[3, 2] A_logf32[2] dt_biasf32[2] cu_seqlensi32[2] ");
  EXPECT_EQ(names("/raw_gate=on/a_log=off"),
            "vbf16[3, 2, 64] raw_gatebf16[3, 2] betaf32[3, 2] dt_biasf32[2] cu_seqlensi32[2] ");
}

TEST(OpInfo, CountsOnlyActiveRows) {
  const Problem full = parse_id("l2norm/fwd/len=10,HK=2,K=64").problem,
                part = parse_id("l2norm/fwd/len=10,HK=2,K=64,cap=99").problem;
  EXPECT_EQ(op_info("l2norm").bytes(full), op_info("l2norm").bytes(part));
}

}  // namespace
}  // namespace deltagauge
