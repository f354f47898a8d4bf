// gdn on a device: what the checks of validate do not reach. Every comparison is bit for bit, between two runs of one
// variant: a large call against a small one, a captured one against an eager one.
#include "kernels/gdn/gdn.h"

#include <map>

#include "core/inputs.h"
#include "kernels/runtime/graph.h"
#include "kernels/runtime/testing.h"

namespace deltagauge::kernels::gdn {
namespace {

using namespace runtime;

Args args_of(const Problem& p) {
  return {.T = p.rows(),
          .N = p.sequences(),
          .HK = p.HK,
          .HV = p.HV,
          .K = p.K,
          .V = p.V,
          .io = p.io,
          .state = p.state,
          .scale = static_cast<float>(p.q_scale())};
}

// A call with its tensors on the device.
class Call {
 public:
  Call(std::string_view variant, const Problem& p, const Tensors& inputs)
      : variant_(variant), problem_(p), args_(args_of(p)), workspace_(workspace_bytes(variant, args_)) {
    for (const auto& [name, tensor] : inputs) device_.emplace(name, to_device(tensor, stream_));
    device_.emplace("o", Buffer(static_cast<std::size_t>(p.rows() * p.HV * p.V) * size_of(p.io)));
    if (p.final_state == Switch::on) device_.emplace("final_state", Buffer(state_bytes()));
    args_.q = at("q");
    args_.k = at("k");
    args_.v = at("v");
    args_.g = at("g");
    args_.beta = at("beta");
    args_.initial_state = at("initial_state");
    args_.cu_seqlens = static_cast<const std::int32_t*>(at("cu_seqlens"));
    args_.o = at("o");
    args_.final_state = at("final_state");
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
    if (args_.final_state) device_.at("final_state").fill(0xff, stream_);
  }
  Tensor o() const { return to_host(device_.at("o"), problem_.io, {problem_.rows(), problem_.HV, problem_.V}, stream_); }
  Tensor final_state() const {
    return to_host(device_.at("final_state"), problem_.state, {problem_.sequences(), problem_.HV, problem_.V, problem_.K},
                   stream_);
  }

 private:
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

class Gdn : public GpuTest {};

TEST_F(Gdn, ACapturedCallGivesTheBitsOfAnEagerOne) {
  const Case c = parse_id("gdn/fwd/len=130+0+1+70,HK=2,HV=4,K=64,V=64,cap=210/bf16/h0=normal=1");
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

TEST_F(Gdn, EmptySequencesPassTheirStateThroughInPlace) {
  for (const char* state : {"f32", "bf16"}) {
    const Case c = parse_id("gdn/fwd/len=0x5,HK=1,HV=2,K=64,V=64,cap=7/bf16/h0=normal=1/state=" + std::string(state));
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

// Offsets that run backwards or past T must not lead outside the tensors; what comes out is not specified.
TEST_F(Gdn, BadOffsetsDoNotFault) {
  const Case c = parse_id("gdn/fwd/len=10+10+10+10,HK=1,HV=2,K=64,V=64/bf16/h0=normal=1");
  Tensors inputs = make_inputs(c);
  const std::int32_t bad[] = {-5, 30, 7, 41, 2000000000};
  std::copy(std::begin(bad), std::end(bad), inputs.find("cu_seqlens")->second.as<std::int32_t>().begin());
  for (const Variant& variant : variants()) {
    Call call(variant.name, c.problem, inputs);
    EXPECT_NO_THROW(call.run()) << variant.name;
  }
}

// One token a sequence, more sequences than a grid has rows along y or z. Each must give the bits it gives alone.
TEST_F(Gdn, MoreThan65535SequencesRun) {
  const Case c = parse_id("gdn/fwd/len=1x66000,HK=1,HV=1,K=64,V=64/bf16/final=off");
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

// T * H * D passes 2^31: only the last of 513 sequences has data, the rest of the memory is zero. Its rows start past
// element 2^31, so an offset cut to 32 bits reads or writes elsewhere.
TEST_F(Gdn, OffsetsPast2To31ElementsReachTheirRows) {
  constexpr std::int64_t kLength = 64, kSequences = 513;
  const Case c = parse_id("gdn/fwd/len=64,HK=1024,HV=1024,K=64,V=64/bf16/layout=dense/final=off");
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
