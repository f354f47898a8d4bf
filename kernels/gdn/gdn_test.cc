// gdn on a device: what the checks of validate do not reach. Every comparison is bit for bit, between two runs of one
// variant: a large call against a small one, a captured one against an eager one.
#include "kernels/gdn/gdn.h"

#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "core/inputs.h"
#include "kernels/runtime/graph.h"
#include "kernels/runtime/testing.h"

namespace deltagauge::kernels::gdn {
namespace {

using namespace runtime;

Args args_of(const Problem& p) {
  return {.slots = p.slots,
          .slot_stride = p.slots ? p.HV * p.V * p.K + p.slot_pad : 0,
          .T = p.rows(),
          .N = p.sequences(),
          .HK = p.HK,
          .HV = p.HV,
          .K = p.K,
          .V = p.V,
          .io = p.io,
          .state = p.state,
          .scale = static_cast<float>(p.q_scale()),
          .l2norm = p.l2norm == Switch::on,
          .transform = p.raw_gate == Switch::off  ? Transform::none
                       : p.transform == "bounded" ? Transform::bounded
                                                  : Transform::softplus,
          .lower_bound = static_cast<float>(p.lower_bound),
          .fast_math = p.math == MathMode::fast};
}

// A call with its tensors on the device.
class Call {
 public:
  Call(std::string_view variant, const Problem& p, const Tensors& inputs)
      : variant_(variant), problem_(p), args_(args_of(p)), workspace_(workspace_bytes(variant, args_)) {
    for (const auto& [name, tensor] : inputs) device_.emplace(name, to_device(tensor, stream_));
    device_.emplace("o", Buffer(static_cast<std::size_t>(p.rows() * p.HV * p.V) * size_of(p.io)));
    if (p.slots)
      spread_pool(get(inputs, "initial_state"));
    else if (p.final_state == Switch::on)
      device_.emplace("final_state", Buffer(state_bytes()));
    args_.q = at("q");
    args_.k = at("k");
    args_.v = at("v");
    args_.g = at(p.raw_gate == Switch::on ? "raw_gate" : "g");
    args_.A_log = static_cast<const float*>(at("A_log"));
    args_.dt_bias = static_cast<const float*>(at("dt_bias"));
    args_.beta = at("beta");
    args_.initial_state = at("initial_state");
    args_.cu_seqlens = static_cast<const std::int32_t*>(at("cu_seqlens"));
    args_.o = at("o");
    args_.final_state = p.slots ? at("initial_state") : at("final_state");
    args_.state_indices = static_cast<const std::int32_t*>(at("state_indices"));
    args_.has_initial_state = static_cast<const std::uint8_t*>(at("has_initial_state"));
    args_.workspace = workspace_.as();
    stream_.sync();
  }

  Args& args() { return args_; }
  const Stream& stream() const { return stream_; }
  void enqueue() { fwd(variant_, args_, stream_.get()); }
  void run() {
    enqueue();
    stream_.sync();
  }
  void spoil_outputs() {
    device_.at("o").fill(0xff, stream_);
    if (args_.final_state && !problem_.slots) device_.at("final_state").fill(0xff, stream_);
  }
  Tensor o() const { return to_host(device_.at("o"), problem_.io, {problem_.rows(), problem_.HV, problem_.V}, stream_); }
  Tensor final_state() const {
    return to_host(device_.at("final_state"), problem_.state, {problem_.sequences(), problem_.HV, problem_.V, problem_.K},
                   stream_);
  }

  // All of the pool, with what lies between its slots.
  Tensor pool() const {
    return to_host(device_.at("initial_state"), problem_.state, {problem_.slots, args_.slot_stride}, stream_);
  }

 private:
  // Slots slot_stride elements apart; what lies between them is 0xff.
  void spread_pool(const Tensor& states) {
    const std::size_t slot = states.nbytes() / static_cast<std::size_t>(problem_.slots),
                      stride = static_cast<std::size_t>(args_.slot_stride) * size_of(problem_.state);
    device_.erase("initial_state");
    Buffer& pool = device_.emplace("initial_state", Buffer(stride * static_cast<std::size_t>(problem_.slots))).first->second;
    pool.fill(0xff, stream_);
    for (std::int64_t i = 0; i < problem_.slots; ++i) {
      const auto place = static_cast<std::size_t>(i);
      pool.upload(states.data() + place * slot, slot, stream_, place * stride);
    }
  }
  void* at(const std::string& name) const {
    const auto found = device_.find(name);
    return found == device_.end() ? nullptr : found->second.as();
  }
  std::size_t state_bytes() const {
    return static_cast<std::size_t>(problem_.sequences() * problem_.HV * problem_.V * problem_.K) * size_of(problem_.state);
  }

  const std::string variant_;
  const Problem problem_;
  Args args_;
  Stream stream_;
  Buffer workspace_;
  std::map<std::string, Buffer> device_;
};

// Cases that all variants take have bf16 and K = V = 128.
class Gdn : public GpuTest {};

TEST_F(Gdn, ACapturedCallGivesTheBitsOfAnEagerOne) {
  const Case c = parse_id("gdn/fwd/len=130+0+1+70,HK=2,HV=4,K=128,V=128,cap=210/bf16/h0=normal=1");
  const Tensors inputs = make_inputs(c);
  for (const Variant& variant : variants()) {
    Call call(variant.name, c.problem, inputs);
    call.spoil_outputs();
    call.run();
    const Tensor o = call.o(), state = call.final_state();
    Graph graph(call.stream(), [&] { call.enqueue(); });
    for (int replay = 0; replay < 2; ++replay) {
      call.spoil_outputs();
      graph.launch(call.stream());
      EXPECT_TRUE(bitwise_equal(call.o(), o)) << variant.name;
      EXPECT_TRUE(bitwise_equal(call.final_state(), state)) << variant.name;
    }
  }
}

TEST_F(Gdn, ARawGateWithoutALogGivesTheBitsOfALogZero) {
  for (const char* axes :
       {"gate=edge", "gate=edge/fast", "gate=strong/transform=bounded", "gate=edge/transform=bounded/fast"}) {
    const Case c = parse_id("gdn/fwd/len=70+1+130,HK=1,HV=6,K=128,V=128/bf16/raw_gate=on/A_log[*]=0/" + std::string(axes));
    const Tensors inputs = make_inputs(c);
    for (const Variant& variant : variants()) {
      Call zero(variant.name, c.problem, inputs), absent(variant.name, c.problem, inputs);
      absent.args().A_log = nullptr;
      zero.run();
      absent.run();
      EXPECT_TRUE(bitwise_equal(absent.o(), zero.o())) << variant.name << " " << axes;
      EXPECT_TRUE(bitwise_equal(absent.final_state(), zero.final_state())) << variant.name << " " << axes;
    }
  }
}

TEST_F(Gdn, EmptySequencesPassTheirStateThroughInPlace) {
  for (const char* state : {"f32", "bf16"}) {
    const Case c = parse_id("gdn/fwd/len=0x5,HK=1,HV=2,K=128,V=128,cap=7/bf16/h0=normal=1/state=" + std::string(state));
    const Tensors inputs = make_inputs(c);
    for (const Variant& variant : variants()) {
      Call call(variant.name, c.problem, inputs);
      const Buffer pool = to_device(get(inputs, "initial_state"), call.stream());
      call.args().initial_state = call.args().final_state = pool.as();
      call.run();
      const Tensor& before = get(inputs, "initial_state");
      EXPECT_TRUE(bitwise_equal(to_host(pool, before.dtype(), before.shape(), call.stream()), before))
          << variant.name << state;
    }
  }
}

// A pool against the same sequences without one: states gathered before, scattered after.
TEST_F(Gdn, APoolGivesTheBitsOfGatheredStatesAndKeepsTheOthers) {
  for (const char* more : {"/idx=permuted=1", "/idx=permuted=1/state=bf16", "/idx=permuted=1/slot_pad=64",
                           "/idx=permuted=1/state=bf16/slot_pad=64/has=off", "/idx=holes=3/has=mixed"}) {
    const Case c =
        parse_id("gdn/fwd/len=70+0+130+1+64+0,HK=1,HV=2,K=128,V=128,cap=300/bf16/h0=normal=1/slots=9" + std::string(more));
    const Problem& p = c.problem;
    const Tensors inputs = make_inputs(c);
    const auto slots = p.state_indices();
    const auto has = p.has_initial_state();
    Problem plain = p;
    plain.slots = plain.slot_pad = 0;
    plain.idx = "iota", plain.has = "on";
    Tensors gathered;
    for (const char* name : {"q", "k", "v", "g", "beta", "cu_seqlens"}) gathered[name] = get(inputs, name);
    Tensor& states = gathered["initial_state"] = Tensor(p.state, {p.sequences(), p.HV, p.V, p.K});
    const std::size_t bytes = states.nbytes() / slots.size(),
                      stride = bytes + static_cast<std::size_t>(p.slot_pad) * size_of(p.state);
    for (std::size_t n = 0; n < slots.size(); ++n)
      if (slots[n] > 0 && has[n])
        std::memcpy(states.data() + n * bytes,
                    get(inputs, "initial_state").data() + static_cast<std::size_t>(slots[n]) * bytes, bytes);
    for (const Variant& variant : variants()) {
      if (unsupported_device(variant.name, device_query().device->sm)) continue;
      Call without(variant.name, plain, gathered), with(variant.name, p, inputs);
      without.spoil_outputs(), with.spoil_outputs();
      Tensor want = with.pool();
      without.run(), with.run();
      const Tensor o = with.o(), plain_o = without.o(), final_state = without.final_state();
      for (std::size_t n = 0; n < slots.size(); ++n) {
        const std::int64_t first = p.offsets()[n], length = p.lengths[n];
        if (slots[n] > 0) {
          EXPECT_TRUE(bitwise_equal(rows(o, first, length), rows(plain_o, first, length))) << variant.name << more << n;
          std::memcpy(want.data() + static_cast<std::size_t>(slots[n]) * stride, final_state.data() + n * bytes, bytes);
        } else {
          for (const double x : to_f64(rows(o, first, length))) EXPECT_EQ(x, 0) << variant.name << more << n;
        }
      }
      EXPECT_TRUE(bitwise_equal(with.pool(), want)) << variant.name << more;
      EXPECT_TRUE(
          bitwise_equal(rows(o, p.tokens(), p.rows() - p.tokens()), rows(plain_o, p.tokens(), p.rows() - p.tokens())))
          << variant.name << more << ": rows past the end";
    }
  }
}

// Indices at and past the end of the pool, and far below 0, count as no slot: nothing outside is touched.
TEST_F(Gdn, IndicesOutsideThePoolTouchNothing) {
  const Case c = parse_id("gdn/fwd/len=70+1+0+5,HK=1,HV=2,K=128,V=128/bf16/h0=normal=1/slots=6/has=mixed");
  Tensors inputs = make_inputs(c);
  const std::int32_t bad[] = {6, 2147483647, 7, -2147483647};
  std::copy(std::begin(bad), std::end(bad), inputs.find("state_indices")->second.as<std::int32_t>().begin());
  for (const Variant& variant : variants()) {
    if (unsupported_device(variant.name, device_query().device->sm)) continue;
    Call call(variant.name, c.problem, inputs);
    const Tensor before = call.pool();
    call.spoil_outputs();
    call.run();
    EXPECT_TRUE(bitwise_equal(call.pool(), before)) << variant.name;
    for (const double x : to_f64(call.o())) EXPECT_EQ(x, 0) << variant.name;
  }
}

// C053. A slot whose first element passes 2^31: an offset cut to 32 bits reads or writes elsewhere.
TEST_F(Gdn, SlotsPast2To31ElementsAreReached) {
  const Case c = parse_id("gdn/fwd/len=70,HK=1,HV=2,K=128,V=128/bf16/h0=normal=1/state=bf16");
  const Tensors inputs = make_inputs(c);
  constexpr std::int64_t kStride = std::int64_t{1} << 20, kSlots = 2050;
  const std::size_t bytes = static_cast<std::size_t>(kStride * kSlots) * size_of(DType::bf16);
  if (static_cast<std::size_t>(device_query().device->memory_bytes) < bytes + (std::size_t{1} << 30))
    GTEST_SKIP() << "needs " << bytes << " bytes of device memory";
  const Tensor& state = get(inputs, "initial_state");
  const Stream stream;
  Buffer pool(bytes);
  for (const Variant& variant : variants()) {
    if (unsupported_device(variant.name, device_query().device->sm)) continue;
    Call alone(variant.name, c.problem, inputs), call(variant.name, c.problem, inputs);
    alone.run();
    Tensor index(DType::i32, {1});
    index.store(0, kSlots - 1);
    const Buffer indices = to_device(index, stream);
    pool.fill(0, stream);
    pool.upload(state.data(), state.nbytes(), stream, bytes - kStride * size_of(DType::bf16));
    stream.sync();
    call.args().initial_state = call.args().final_state = pool.as();
    call.args().state_indices = static_cast<const std::int32_t*>(indices.as());
    call.args().slots = kSlots;
    call.args().slot_stride = kStride;
    call.run();
    EXPECT_TRUE(bitwise_equal(call.o(), alone.o())) << variant.name;
    const Tensor last = to_host(pool, DType::bf16, state.shape(), stream, static_cast<std::size_t>((kSlots - 1) * kStride));
    EXPECT_TRUE(bitwise_equal(last, alone.final_state())) << variant.name;
  }
}

// More items than the device has blocks for, and fewer; sequences without work at both ends and between.
TEST_F(Gdn, SchedulesGiveTheSameBits) {
  for (const char* id :
       {"gdn/fwd/len=1x1000+0x100+130+0x70+65x40+0x50,HK=2,HV=8,K=64,V=64,cap=5000/bf16/final=off",
        "gdn/fwd/len=0x40+70+0+1+200+0x60,HK=1,HV=2,K=128,V=128,cap=300/bf16/h0=normal=1",
        "gdn/fwd/len=70x50+0x50,HK=2,HV=4,K=64,V=64,cap=4000/f16/h0=normal=1/slots=120/idx=holes=3/has=mixed",
        "gdn/fwd/len=70x3,HK=1,HV=2,K=64,V=64/bf16/layout=dense/l2norm=on",
        "gdn/fwd/len=70x50+0x50,HK=2,HV=4,K=64,V=64,cap=4000/bf16/gate=model/raw_gate=on/l2norm=on",
        "gdn/fwd/len=0x5,HK=1,HV=2,K=64,V=64,cap=7/bf16/final=off"}) {
    const Case c = parse_id(id);
    const Tensors inputs = make_inputs(c);
    for (const Variant& variant : variants()) {
      if (!variant.persistent) continue;
      const auto run = [&](Schedule schedule) {
        auto call = std::make_unique<Call>(variant.name, c.problem, inputs);
        call->args().schedule = schedule;
        call->spoil_outputs();
        call->run();
        return call;
      };
      const auto want = run(Schedule::static_grid);
      for (const Schedule schedule : {Schedule::persistent, Schedule::automatic}) {
        const auto got = run(schedule);
        EXPECT_TRUE(bitwise_equal(got->o(), want->o())) << variant.name << " " << name(schedule) << " " << id;
        const auto state = [&](const Call& call) { return c.problem.slots ? call.pool() : call.final_state(); };
        if (want->args().final_state) {
          EXPECT_TRUE(bitwise_equal(state(*got), state(*want))) << variant.name << " " << name(schedule) << " " << id;
        }
      }
    }
  }
}

// Offsets that run backwards or past T must not lead outside the tensors; what comes out is not specified.
TEST_F(Gdn, BadOffsetsDoNotFault) {
  const struct {
    const char* id;
    std::vector<std::int32_t> offsets;
  } cases[] = {
      {"gdn/fwd/len=10+10+10+10,HK=1,HV=2,K=128,V=128/bf16/h0=normal=1", {-5, 30, 7, 41, 2000000000}},
      {"gdn/fwd/len=100+100+56,HK=1,HV=2,K=128,V=128/bf16/h0=normal=1", {0, 256, 0, 64}},  // chunks that share a slot
  };
  for (const auto& [id, offsets] : cases) {
    const Case c = parse_id(id);
    Tensors inputs = make_inputs(c);
    std::copy(offsets.begin(), offsets.end(), inputs.find("cu_seqlens")->second.as<std::int32_t>().begin());
    for (const Variant& variant : variants()) {
      Call call(variant.name, c.problem, inputs);
      EXPECT_NO_THROW(call.run()) << variant.name << " " << id;
    }
  }
}

// One token a sequence, more sequences than a grid has rows along y or z. Each must give the bits it gives alone.
TEST_F(Gdn, MoreThan65535SequencesRun) {
  const Case c = parse_id("gdn/fwd/len=1x66000,HK=1,HV=1,K=128,V=128/bf16/final=off");
  const Tensors inputs = make_inputs(c);
  for (const Variant& variant : variants()) {
    Call call(variant.name, c.problem, inputs);
    call.spoil_outputs();
    call.run();
    const Tensor o = call.o();
    for (const std::int64_t n : {0, 65534, 65535, 65536, 65999}) {
      Case alone = c;
      alone.problem.lengths = {1};
      Tensors slice;
      for (const auto& [name, tensor] : inputs) {
        if (name != "cu_seqlens") slice[name] = rows(tensor, n, 1);
      }
      Call single(variant.name, alone.problem, slice);
      single.run();
      EXPECT_TRUE(bitwise_equal(rows(o, n, 1), single.o())) << variant.name << " sequence " << n;
    }
  }
}

// C051. T * H * D passes 2^31: only the last of 513 sequences has data, the rest of the memory is zero. Its rows start past
// element 2^31, so an offset cut to 32 bits reads or writes elsewhere.
TEST_F(Gdn, OffsetsPast2To31ElementsReachTheirRows) {
  constexpr std::int64_t kLength = 64, kSequences = 513;
  const Case c = parse_id("gdn/fwd/len=64,HK=512,HV=512,K=128,V=128/bf16/layout=dense/final=off");
  const Tensors inputs = make_inputs(c);
  Problem big = c.problem;
  big.lengths.assign(kSequences, kLength);
  const std::int64_t per_sequence = kLength * big.HV * big.V;
  ASSERT_GE((kSequences - 1) * per_sequence, std::int64_t{1} << 31);
  for (const Variant& variant : variants()) {
    Args args = args_of(big);
    const auto io_bytes = static_cast<std::size_t>(kSequences * per_sequence) * size_of(big.io);
    const auto scalar_bytes = static_cast<std::size_t>(big.rows() * big.HV) * sizeof(float);
    const std::size_t need = 4 * io_bytes + 2 * scalar_bytes + workspace_bytes(variant.name, args) + (std::size_t{1} << 30);
    if (static_cast<std::size_t>(device_query().device->memory_bytes) < need)
      GTEST_SKIP() << variant.name << " needs " << need << " bytes of device memory";
    Call alone(variant.name, c.problem, inputs);
    alone.run();

    const Stream stream;
    const Buffer workspace(workspace_bytes(variant.name, args));
    std::map<std::string, Buffer> device;
    for (const auto& [name, tensor] : inputs) {
      Buffer& buffer = device.emplace(name, Buffer(tensor.nbytes() * kSequences)).first->second;
      buffer.fill(0, stream);
      buffer.upload(tensor.data(), tensor.nbytes(), stream, tensor.nbytes() * (kSequences - 1));
    }
    Buffer o(io_bytes);
    o.fill(0xff, stream);
    args.q = device.at("q").as();
    args.k = device.at("k").as();
    args.v = device.at("v").as();
    args.g = device.at("g").as();
    args.beta = device.at("beta").as();
    args.o = o.as();
    args.workspace = workspace.as();
    fwd(variant.name, args, stream.get());
    const Tensor last =
        to_host(o, big.io, {kLength, big.HV, big.V}, stream, static_cast<std::size_t>((kSequences - 1) * per_sequence));
    EXPECT_TRUE(bitwise_equal(last, alone.o())) << variant.name;
  }
}

}  // namespace
}  // namespace deltagauge::kernels::gdn
