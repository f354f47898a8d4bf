// gdn_decode on a device: what the checks of validate do not reach. Every comparison is bit for bit, between two calls on
// the same numbers.
#include "kernels/gdn_decode/gdn_decode.h"

#include <map>
#include <utility>
#include <vector>

#include "core/inputs.h"
#include "kernels/runtime/graph.h"
#include "kernels/runtime/testing.h"

namespace deltagauge::kernels::gdn_decode {
namespace {

using namespace runtime;

// A call with its tensors on the device. The pool starts offset elements into its memory, slots stride elements apart.
class Call {
 public:
  explicit Call(const Case& c, std::int64_t stride = 0, std::int64_t offset = 0) : p_(c.problem) {
    const Tensors inputs = make_inputs(c);
    for (const auto& [name, tensor] : inputs)
      if (name != "initial_state") device_.emplace(name, to_device(tensor, stream_));
    const Tensor& pool = get(inputs, "initial_state");
    const std::int64_t slot = p_.HV * p_.V * p_.K, element = static_cast<std::int64_t>(size_of(p_.state));
    args_ = {.B = p_.sequences(),
             .HK = p_.HK,
             .HV = p_.HV,
             .K = p_.K,
             .V = p_.V,
             .slots = p_.slots,
             .slot_stride = stride ? stride : slot,
             .io = p_.io,
             .state = p_.state,
             .scale = static_cast<float>(p_.q_scale())};
    offset_ = offset;
    const std::int64_t end = offset + (p_.slots - 1) * args_.slot_stride + slot;
    const Buffer& memory = device_.emplace("pool", Buffer(static_cast<std::size_t>(end * element))).first->second;
    for (std::int64_t s = 0; s < p_.slots; ++s)
      device_.at("pool").upload(pool.data() + s * slot * element, static_cast<std::size_t>(slot * element), stream_,
                                at_slot(s));
    device_.emplace("o", Buffer(static_cast<std::size_t>(p_.sequences() * p_.HV * p_.V) * size_of(p_.io)));
    args_.packed_qkv = device_.at("packed_qkv").as();
    args_.raw_gate = device_.at("raw_gate").as();
    args_.raw_beta = device_.at("raw_beta").as();
    args_.A_log = device_.at("A_log").as<float>();
    args_.dt_bias = device_.at("dt_bias").as<float>();
    args_.pool = memory.at(static_cast<std::size_t>(offset * element));
    args_.state_indices = device_.at("state_indices").as<std::int32_t>();
    args_.has_initial_state = device_.at("has_initial_state").as<std::uint8_t>();
    args_.o = device_.at("o").as();
    stream_.sync();
  }

  Args& args() { return args_; }
  const Stream& stream() const { return stream_; }
  void run() {
    fwd(args_, stream_.get());
    stream_.sync();
  }
  void set_indices(const std::vector<std::int32_t>& indices) {
    device_.at("state_indices").upload(indices.data(), indices.size() * sizeof(std::int32_t), stream_);
  }
  Tensor o() const { return to_host(device_.at("o"), p_.io, {p_.sequences(), p_.HV, p_.V}, stream_); }
  Tensor slot(std::int64_t s) const {
    Tensor tensor(p_.state, {p_.HV, p_.V, p_.K});
    device_.at("pool").download(tensor.data(), tensor.nbytes(), stream_, at_slot(s));
    return tensor;
  }

 private:
  std::size_t at_slot(std::int64_t s) const {
    return static_cast<std::size_t>(offset_ + s * args_.slot_stride) * size_of(p_.state);
  }

  const Problem p_;
  Args args_;
  std::int64_t offset_ = 0;
  Stream stream_;
  std::map<std::string, Buffer> device_;
};

class GdnDecode : public GpuTest {};

void expect_same(const Case& c, const Call& got, const Call& want) {
  EXPECT_TRUE(bitwise_equal(got.o(), want.o())) << to_id(c);
  for (const std::int64_t s : c.problem.state_indices())
    if (s > 0) {
      EXPECT_TRUE(bitwise_equal(got.slot(s), want.slot(s))) << to_id(c) << " slot " << s;
    }
}

constexpr const char* kStates[] = {"f32", "bf16"};

TEST_F(GdnDecode, APoolAtAnOddAddressGivesTheBitsOfAnAlignedOne) {
  for (const char* state : kStates)
    for (const char* sizes : {"K=64,V=96", "K=128,V=96", "K=256,V=96", "K=128,V=70", "K=100,V=96"}) {
      const Case c = parse_id("gdn_decode/fwd/len=1x3,HK=1,HV=2," + std::string(sizes) +
                              "/bf16/h0=normal=1/slots=5/idx=permuted=1/state=" + state);
      Call aligned(c), odd(c, 0, 1);
      aligned.run();
      odd.run();
      expect_same(c, odd, aligned);
    }
}

// Calls on much state hold other rows in flight and pass other caches.
TEST_F(GdnDecode, ALargeCallGivesTheBitsOfASmallOne) {
  for (const char* state : kStates)
    for (const auto& [B, K] : {std::pair(70, 64), std::pair(35, 128), std::pair(18, 256)}) {  // 35 MiB or 70
      const Case c = parse_id("gdn_decode/fwd/len=1x" + std::to_string(B) + ",HK=16,HV=32,K=" + std::to_string(K) +
                              ",V=128/bf16/h0=normal=1/slots=" + std::to_string(B + 1) + "/idx=permuted=1/state=" + state);
      Call large(c);
      large.run();
      for (const int few : {1, 8}) {
        Call small(c);
        small.args().B = few;
        small.run();
        EXPECT_TRUE(bitwise_equal(rows(large.o(), 0, few), rows(small.o(), 0, few))) << to_id(c) << " B = " << few;
        for (int b = 0; b < few; ++b) {
          const std::int64_t slot = c.problem.state_indices().at(b);
          EXPECT_TRUE(bitwise_equal(large.slot(slot), small.slot(slot))) << to_id(c) << " B = " << few << " slot " << slot;
        }
      }
    }
}

TEST_F(GdnDecode, SlotsMayLiePast2To31Elements) {
  const Case c = parse_id("gdn_decode/fwd/len=1x2,HK=1,HV=2,K=128,V=128/bf16/h0=normal=1/slots=3/state=bf16");
  Call together(c), apart(c, (std::int64_t{1} << 30) + 8);
  together.run();
  apart.run();
  expect_same(c, apart, together);
}

TEST_F(GdnDecode, WithoutFlagsEverySlotIsRead) {
  const Case c = parse_id("gdn_decode/fwd/len=1x4,HK=2,HV=4,K=64,V=64/f16/h0=normal=1/slots=5");
  Call flags(c), none(c);
  none.args().has_initial_state = nullptr;
  flags.run();
  none.run();
  expect_same(c, none, flags);
}

// A call may start while the one before it ends (launch_dependent), and reads what that one wrote: the pool, or o.
TEST_F(GdnDecode, CallsInARowGiveTheBitsOfCallsOneByOne) {
  constexpr int kCalls = 50;
  for (const char* state : kStates)
    for (const auto& [B, sizes] : {std::pair(1, "HK=16,HV=32,K=128,V=128"), std::pair(8, "HK=16,HV=32,K=128,V=128"),
                                   std::pair(40, "HK=16,HV=32,K=128,V=128"), std::pair(6, "HK=2,HV=4,K=100,V=70")}) {
      const Case c = parse_id("gdn_decode/fwd/len=1x" + std::to_string(B) + "," + sizes +
                              "/bf16/h0=normal=1/slots=" + std::to_string(B + 1) + "/idx=permuted=1/state=" + state);
      Call one_by_one(c), in_a_row(c), captured(c);
      for (int i = 0; i < kCalls; ++i) one_by_one.run();
      for (int i = 0; i < kCalls; ++i) fwd(in_a_row.args(), in_a_row.stream().get());
      in_a_row.stream().sync();
      expect_same(c, in_a_row, one_by_one);
      Graph graph(captured.stream(), [&] {
        for (int i = 0; i < kCalls; ++i) fwd(captured.args(), captured.stream().get());
      });
      graph.launch(captured.stream());
      captured.stream().sync();
      expect_same(c, captured, one_by_one);
    }
}

TEST_F(GdnDecode, ACallReadsWhatTheOneBeforeItWrote) {
  const std::string rest = ",K=64,V=64/bf16/h0=normal=1/slots=65/idx=permuted=1";
  const Case first = parse_id("gdn_decode/fwd/len=1x64,HK=2,HV=4" + rest);
  const Case second = parse_id("gdn_decode/fwd/len=1x64,HK=1,HV=2" + rest);  // whose row of packed_qkv is as long as an o
  const auto in_turn = [](Call& a, Call& b, const auto& after) {
    b.args().packed_qkv = a.args().o;
    for (int i = 0; i < 50; ++i) {
      fwd(a.args(), a.stream().get());
      after();
      fwd(b.args(), a.stream().get());
      after();
    }
  };
  Call a(first), b(second), want_a(first), want_b(second);
  in_turn(want_a, want_b, [&] { want_a.stream().sync(); });
  in_turn(a, b, [] {});
  a.stream().sync();
  expect_same(first, a, want_a);
  expect_same(second, b, want_b);
}

// The index -1 and 0 write nothing but zeros to their rows, and a captured call looks at the indices of the replay.
TEST_F(GdnDecode, AGraphFollowsTheIndicesInMemory) {
  const Case c = parse_id("gdn_decode/fwd/len=1x4,HK=2,HV=4,K=64,V=64/bf16/h0=normal=1/slots=6/idx=1+2+3+4");
  Call call(c), want(c);
  want.run();
  Graph graph(call.stream(), [&] { fwd(call.args(), call.stream().get()); });
  const Tensor before = call.slot(2);
  call.set_indices({1, 0, -1, 4});
  graph.launch(call.stream());
  call.stream().sync();
  EXPECT_TRUE(bitwise_equal(call.slot(2), before));
  for (const std::int64_t s : {1, 4}) EXPECT_TRUE(bitwise_equal(call.slot(s), want.slot(s))) << s;
  const Tensor got = call.o(), right = want.o();
  for (const std::int64_t row : {0, 3}) EXPECT_TRUE(bitwise_equal(rows(got, row, 1), rows(right, row, 1))) << row;
  for (const double x : to_f64(rows(got, 1, 2))) EXPECT_EQ(x, 0);
}

}  // namespace
}  // namespace deltagauge::kernels::gdn_decode
