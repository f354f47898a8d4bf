// Staged ops that run kernels. A rank's memory is one piece on the device; its calls are enqueued around one all-gather and
// read sizes, dtypes and device memory only, so those of all ranks on one GPU can be captured in a graph.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/backend.h"
#include "core/error.h"
#include "kernels/cp/plan.h"
#include "kernels/gdn/gdn.h"
#include "reference/staging.h"
#include "validate/backends/gdn_transform.h"
#include "validate/cp/staged_op.h"
#include "validate/run.h"
#if DELTAGAUGE_HAVE_CUDA
#include <optional>

#include "kernels/cp/compose.h"
#include "kernels/cp/summarise.h"
#include "kernels/cp/transport_local_gpu.h"
#include "kernels/runtime/buffer.h"
#include "kernels/runtime/graph.h"
#include "kernels/runtime/stream.h"
#endif

namespace deltagauge::validate::cp {
namespace {

using namespace kernels;
using kernels::cp::Caps, kernels::cp::Routing, kernels::cp::Transport;

#if DELTAGAUGE_HAVE_CUDA

using runtime::Buffer, runtime::Graph, runtime::Stream;

constexpr std::size_t kAlign = 256;

// A tensor in the rank's memory.
struct Piece {
  DType dtype;
  Shape shape;
  std::size_t offset = 0;
  std::size_t bytes() const {
    std::size_t bytes = size_of(dtype);
    for (const std::int64_t n : shape) bytes *= static_cast<std::size_t>(n);
    return bytes;
  }
};

class CudaRank {
 public:
  // Of span and routing, sizes and dtypes. The memory is on the calling thread's device.
  CudaRank(std::string_view variant, const Span& span, const Routing& routing, bool taps)
      : variant_(variant), caps_(routing.caps), rank_(routing.rank), world_(routing.world), args_(args_of(span.problem)) {
    const std::int64_t N = args_.N, T = args_.T, HV = args_.HV, V = args_.V, K = args_.K, C = kernels::cp::kChunk;
    for (const auto& [name, tensor] : span.inputs) add(name, tensor.dtype(), tensor.shape());
    for (const auto& [name, tensor] : routing_tensors(routing)) add(name, tensor->dtype(), tensor->shape());
    add("initial", DType::f32, {N, HV, V, K});
    add("bias", DType::f32, {N, HV, V, K});
    add("transition", DType::f32, {N, HV, K, K});
    add("gathered", DType::f32, {world_ * caps_.slots, HV, V + K, K});
    add("entry", DType::f32, {N, HV, V, K});
    add("o", args_.io, {T, HV, V});
    add("final_state", DType::f32, {N, HV, V, K});
    if (taps) add("Ainv", DType::f32, {T / C + N, HV, C, C});
    if (taps) add("v_new", DType::f32, {T, HV, V});
    const std::size_t workspace =
        std::max(kernels::cp::summarise_workspace(variant_, args_), gdn::workspace_bytes(variant_, args_));
    add("workspace", DType::boolean, {static_cast<std::int64_t>(workspace)});
    memory_.emplace(bytes_);
    bind();
  }

  // What the calls read; every other byte as in NaN.
  void load(const Span& span, const Routing& routing, const Stream& stream) {
    memory_->fill(0xff, stream);
    for (const auto& [name, tensor] : span.inputs) upload(name, tensor, stream);
    for (const auto& [name, tensor] : routing_tensors(routing)) upload(name, *tensor, stream);
    const Tensor zero(DType::f32, pieces_.at("initial").shape);
    upload("initial", span.initial_state.empty() ? zero : cast(span.initial_state, DType::f32), stream);
    stream.sync();
  }

  // On a device transport it neither allocates nor synchronises.
  void enqueue(Transport& transport, const Stream& stream) {
    const kernels::cp::Maps maps{address<float>("bias"), address<float>("transition")};
    kernels::cp::summarise(variant_, args_, maps, args_.workspace, stream.get());
    kernels::cp::publish(compose_, stream.get());
    exchange(transport, stream);
    kernels::cp::compose(compose_, stream.get());
    gdn::fwd(variant_, args_, stream.get());
  }

  RankAnswer answer(const Stream& stream) const {
    RankAnswer answer{{}, {}, download("entry", stream)};
    for (const char* name : {"o", "final_state", "Ainv", "v_new"})
      if (pieces_.contains(name)) answer.run[name] = download(name, stream);
    const Tensor bias = download("bias", stream), transition = download("transition", stream);
    answer.summaries = Tensor(DType::f32, {args_.N, args_.HV, args_.V + args_.K, args_.K});
    std::byte* to = answer.summaries.data();
    for (std::int64_t map = 0; map < args_.N * args_.HV; ++map)
      for (const Tensor* part : {&bias, &transition}) {
        const std::size_t bytes = part->nbytes() / static_cast<std::size_t>(args_.N * args_.HV);
        to = std::copy_n(part->data() + static_cast<std::size_t>(map) * bytes, bytes, to);
      }
    return answer;
  }

 private:
  static gdn::Args args_of(const Problem& p) {
    return {.T = p.rows(),
            .N = p.sequences(),
            .HK = p.HK,
            .HV = p.HV,
            .K = p.K,
            .V = p.V,
            .io = p.io,
            .state = DType::f32,  // between segments, whatever the op's is
            .gate_dtype = p.gate_dtype,
            .beta_dtype = p.beta_dtype,
            .scale = static_cast<float>(p.q_scale()),
            .l2norm = p.l2norm == Switch::on,
            .transform = transform_of(p),
            .lower_bound = static_cast<float>(p.lower_bound),
            .fast_math = p.math == MathMode::fast};
  }
  static std::map<std::string, const Tensor*> routing_tensors(const Routing& routing) {
    return {{"cu_seqlens", &routing.cu_seqlens},
            {"published", &routing.forward.published},
            {"source", &routing.forward.source},
            {"fold", &routing.forward.fold}};
  }

  void add(const std::string& name, DType dtype, const Shape& shape) {
    const Piece& piece = pieces_[name] = {dtype, shape, bytes_};
    bytes_ += (piece.bytes() + kAlign - 1) / kAlign * kAlign;
  }
  template <class T>
  T* address(const std::string& name) const {  // null: there is no such piece
    const auto found = pieces_.find(name);
    return found == pieces_.end() ? nullptr : reinterpret_cast<T*>(memory_->at(found->second.offset));
  }
  void bind() {
    args_.q = address<void>("q");
    args_.k = address<void>("k");
    args_.v = address<void>("v");
    args_.g = address<void>(args_.transform == gdn::Transform::none ? "g" : "raw_gate");
    args_.beta = address<void>("beta");
    args_.A_log = address<float>("A_log");
    args_.dt_bias = address<float>("dt_bias");
    args_.cu_seqlens = address<std::int32_t>("cu_seqlens");
    args_.initial_state = address<void>("entry");
    args_.o = address<void>("o");
    args_.final_state = address<void>("final_state");
    args_.workspace = address<void>("workspace");
    args_.tap_Ainv = address<float>("Ainv");
    args_.tap_v_new = address<float>("v_new");
    compose_ = {.published = address<std::int32_t>("published"),
                .source = address<std::int32_t>("source"),
                .fold = address<std::int32_t>("fold"),
                .initial = address<float>("initial"),
                .bias = address<float>("bias"),
                .transition = address<float>("transition"),
                .own = address<float>("gathered") + rank_ * elements_published(),
                .gathered = address<float>("gathered"),
                .entry = address<float>("entry"),
                .segments = caps_.segments,
                .fragments = caps_.fragments,
                .slots = caps_.slots,
                .world = world_,
                .HV = args_.HV,
                .K = args_.K,
                .V = args_.V};
  }
  std::int64_t elements_published() const { return caps_.slots * args_.HV * (args_.V + args_.K) * args_.K; }

  void exchange(Transport& transport, const Stream& stream) {
    if (transport.rank() != static_cast<std::size_t>(rank_) || transport.world() != static_cast<std::size_t>(world_))
      fail("context parallelism: routing: expected rank ", transport.rank(), " of ", transport.world(), ", got rank ", rank_,
           " of ", world_);
    const std::size_t bytes = static_cast<std::size_t>(elements_published()) * sizeof(float);
    if (transport.memory() == kernels::cp::Memory::device)
      return transport.all_gather(compose_.own, address<void>("gathered"), bytes, stream.get());
    const Piece& piece = pieces_.at("gathered");
    std::vector<std::byte> own(bytes), all(piece.bytes());
    if (bytes) memory_->download(own.data(), bytes, stream, piece.offset + static_cast<std::size_t>(rank_) * bytes);
    transport.all_gather(own.data(), all.data(), bytes, nullptr);
    if (bytes) memory_->upload(all.data(), all.size(), stream, piece.offset);
  }

  void upload(const std::string& name, const Tensor& tensor, const Stream& stream) {
    const Piece& piece = pieces_.at(name);
    if (tensor.dtype() != piece.dtype || tensor.shape() != piece.shape)
      fail("context parallelism: ", name, ": expected ", deltagauge::name(piece.dtype), " ", to_string(piece.shape),
           " as in the first call, got ", deltagauge::name(tensor.dtype()), " ", to_string(tensor.shape()));
    if (tensor.nbytes()) memory_->upload(tensor.data(), tensor.nbytes(), stream, piece.offset);
  }
  Tensor download(const std::string& name, const Stream& stream) const {
    const Piece& piece = pieces_.at(name);
    Tensor tensor(piece.dtype, piece.shape);
    if (tensor.nbytes()) memory_->download(tensor.data(), tensor.nbytes(), stream, piece.offset);
    return tensor;
  }

  std::string variant_;
  Caps caps_;
  std::int64_t rank_, world_;
  gdn::Args args_;
  kernels::cp::ComposeArgs compose_;
  std::map<std::string, Piece> pieces_;
  std::size_t bytes_ = 0;
  std::optional<Buffer> memory_;
};

// All ranks on the calling thread's device and one stream.
class CudaRanks : public Captured {
 public:
  CudaRanks(std::string_view variant, const Ranks& ranks, bool taps) {
    for (std::size_t r = 0; r < ranks.world(); ++r) ranks_.emplace_back(variant, ranks.spans[r], ranks.routings[r], taps);
  }
  std::vector<RankAnswer> run(const Ranks& ranks) {
    load(ranks);
    enqueue();
    return answers();
  }
  void capture(const Ranks& first) {
    run(first);  // loads the kernels, which a capture may not
    graph_.emplace(stream_, [this] { enqueue(); });
  }
  std::vector<RankAnswer> replay(const Ranks& ranks) override {
    load(ranks);
    graph_->launch(stream_);
    return answers();
  }

 private:
  void load(const Ranks& ranks) {
    if (ranks.world() != ranks_.size())
      fail("context parallelism: expected ", ranks_.size(), " ranks as in the first call, got ", ranks.world());
    for (std::size_t r = 0; r < ranks_.size(); ++r) ranks_[r].load(ranks.spans[r], ranks.routings[r], stream_);
  }
  void enqueue() {
    kernels::cp::run_local_gpu(ranks_.size(),
                               [this](Transport& transport) { ranks_[transport.rank()].enqueue(transport, stream_); });
  }
  std::vector<RankAnswer> answers() const {
    std::vector<RankAnswer> answers;
    for (const CudaRank& rank : ranks_) answers.push_back(rank.answer(stream_));
    return answers;
  }

  Stream stream_;
  std::vector<CudaRank> ranks_;
  std::optional<Graph> graph_;
};

RankAnswer run_one(std::string_view variant, const Span& span, const Routing& routing, Transport& transport, bool taps) {
  const Stream stream;
  CudaRank rank(variant, span, routing, taps);
  rank.load(span, routing, stream);
  rank.enqueue(transport, stream);
  return rank.answer(stream);
}
std::vector<RankAnswer> run_all(std::string_view variant, const Ranks& ranks, bool taps) {
  return CudaRanks(variant, ranks, taps).run(ranks);
}
std::unique_ptr<Captured> capture_all(std::string_view variant, const Ranks& first) {
  auto captured = std::make_unique<CudaRanks>(variant, first, true);
  captured->capture(first);
  return captured;
}

#else

[[noreturn]] void no_cuda(std::string_view variant) {
  fail("cuda.cp.", variant, ": expected a build with CUDA, got one without");
}
RankAnswer run_one(std::string_view variant, const Span&, const Routing&, Transport&, bool) { no_cuda(variant); }
std::vector<RankAnswer> run_all(std::string_view variant, const Ranks&, bool) { no_cuda(variant); }
std::unique_ptr<Captured> capture_all(std::string_view variant, const Ranks&) { no_cuda(variant); }

#endif

class CudaOp : public StagedOp {
 public:
  explicit CudaOp(const gdn::Variant& variant)
      : name_("cuda.cp." + std::string(variant.name)), variant_(variant), plain_(cuda_gdn(variant.name)) {}
  std::string_view name() const override { return name_; }
  std::string_view staging() const override { return variant_.staging; }
  std::optional<std::string> unsupported(const Problem& problem) const override {
    const auto why = not_staged(problem);
    return why ? why : plain_->unsupported(problem);
  }
  Tensors whole(const Problem& problem, const Tensors& inputs) const override {
    const auto plan = plain_->plan(problem, inputs, {});
    plan->run();
    return plan->outputs();
  }
  RankAnswer rank(const Span& span, const Routing& routing, Transport& transport, bool taps) const override {
    return run_one(variant_.name, span, routing, transport, taps);
  }
  std::vector<RankAnswer> ranks(const Ranks& ranks, bool taps, Fault fault) const override {
    if (fault != Fault::none) fail(name_, ": expected no planted fault, which only the reference takes, got one");
    return run_all(variant_.name, ranks, taps);
  }
  std::unique_ptr<Captured> capture(const Ranks& first) const override { return capture_all(variant_.name, first); }

 private:
  std::string name_;
  const gdn::Variant& variant_;
  std::unique_ptr<Backend> plain_;  // the op as it is without ranks
};

}  // namespace

std::unique_ptr<StagedOp> cuda_op(std::string_view name) {
  const gdn::Variant& variant = gdn::find_variant(name);
  if (reference::staging(variant.staging).chunk != kernels::cp::kChunk) return nullptr;
  return std::make_unique<CudaOp>(variant);
}

void add_cuda_ops(StagedOps& ops) {
  for (const gdn::Variant& variant : gdn::variants())
    if (auto op = cuda_op(variant.name)) ops.push_back(std::move(op));
}

}  // namespace deltagauge::validate::cp
