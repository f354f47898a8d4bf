// The device's fold against the reference's: on the same maps and the same routing the same entry states, bit for bit.
#include "kernels/cp/compose.h"

#include <algorithm>
#include <map>

#include "core/inputs.h"
#include "kernels/cp/tables.h"
#include "kernels/runtime/testing.h"
#include "validate/cp/sharded.h"

namespace deltagauge::validate::cp {
namespace {

using namespace kernels::runtime;

class Compose : public GpuTest {};

// Rows [first, first + count) of every map.
Tensor part_of(const Tensor& summaries, std::int64_t first, std::int64_t count) {
  const std::int64_t rows = summaries.dim(2), K = summaries.dim(3);
  Tensor part(summaries.dtype(), {summaries.dim(0), summaries.dim(1), count, K});
  for (std::int64_t map = 0; map < summaries.dim(0) * summaries.dim(1); ++map)
    for (std::int64_t i = 0; i < count * K; ++i)
      part.store(map * count * K + i, summaries.load((map * rows + first) * K + i));
  return part;
}

class DeviceRank {
 public:
  DeviceRank(const Problem& p, const Span& span, const kernels::cp::Routing& routing, const RankAnswer& answer)
      : entry_(answer.entry.shape()) {
    args_ = {.segments = routing.caps.segments,
             .fragments = routing.caps.fragments,
             .slots = routing.caps.slots,
             .world = routing.world,
             .HV = p.HV,
             .K = p.K,
             .V = p.V};
    args_.published = put<std::int32_t>("published", routing.forward.published);
    args_.source = put<std::int32_t>("source", routing.forward.source);
    args_.fold = put<std::int32_t>("fold", routing.forward.fold);
    if (!span.initial_state.empty()) args_.initial = put<float>("initial", cast(span.initial_state, DType::f32));
    args_.bias = put<float>("bias", part_of(answer.summaries, 0, p.V));
    args_.transition = put<float>("transition", part_of(answer.summaries, p.V, p.K));
    own_ = {routing.caps.slots, p.HV, p.V + p.K, p.K};
    args_.own = put<float>("own", Tensor(DType::f32, own_));
    args_.entry = put<float>("entry", Tensor(DType::f32, entry_));
    held_.at("own").fill(0xff, stream_);
    held_.at("entry").fill(0xff, stream_);
  }
  Tensor published() {
    kernels::cp::publish(args_, stream_.get());
    return to_host(held_.at("own"), DType::f32, own_, stream_);
  }
  Tensor composed(const Tensor& gathered) {
    args_.gathered = put<float>("gathered", gathered);
    kernels::cp::compose(args_, stream_.get());
    return to_host(held_.at("entry"), DType::f32, entry_, stream_);
  }

 private:
  template <class T>
  T* put(const std::string& name, const Tensor& tensor) {
    T* at = held_.emplace(name, to_device(tensor, stream_)).first->second.as<T>();
    stream_.sync();  // the tensor may be gone when this returns
    return at;
  }
  Stream stream_;
  std::map<std::string, Buffer> held_;
  kernels::cp::ComposeArgs args_;
  Shape own_, entry_;
};

TEST_F(Compose, gives_the_bits_of_the_references_fold) {
  StagedOps ops;
  add_reference_ops(ops);
  const auto op = std::ranges::find(ops, "reference.cp.chunk64.f32", [](const auto& one) { return one->name(); });
  ASSERT_NE(op, ops.end());
  for (const char* axes : {"len=37+351+0+40,HK=1,HV=2,K=24,V=20/bf16/gate=mild/h0=normal=1/seed=4",
                           "len=500,HK=1,HV=3,K=64,V=64/bf16/gate=none/seed=5",
                           "len=200+130,HK=1,HV=1,K=128,V=8/f16/gate=edge/h0=normal=1/seed=6"}) {
    const Case c = parse_id(std::string("gdn/fwd/") + axes);
    const Tensors inputs = make_inputs(c);
    const auto documents = documents_of(c.problem);
    for (const auto& kind : kernels::cp::table_kinds())
      for (const std::int64_t world : {1, 3}) {
        const auto plan = kernels::cp::plan(documents, kernels::cp::make_table(kind.name, {documents, world, -1, 2}), 64);
        auto caps = kernels::cp::caps_of(plan);
        ++caps.segments, ++caps.slots, ++caps.fragments;
        const Ranks ranks = ranks_of(c.problem, inputs, plan, caps);
        const auto want = (*op)->ranks(ranks, false);
        Tensor gathered(DType::f32, {world * caps.slots, c.problem.HV, c.problem.V + c.problem.K, c.problem.K});
        std::byte* to = gathered.data();
        std::map<std::size_t, DeviceRank> device;
        for (std::size_t r = 0; r < ranks.world(); ++r) {
          DeviceRank& rank = device.try_emplace(r, c.problem, ranks.spans[r], ranks.routings[r], want[r]).first->second;
          const Tensor own = rank.published();
          to = std::copy_n(own.data(), own.nbytes(), to);
        }
        for (std::size_t r = 0; r < ranks.world(); ++r)
          EXPECT_TRUE(bitwise_equal(device.at(r).composed(gathered), want[r].entry))
              << axes << " " << kind.name << " rank " << r << " of " << world;
      }
  }
}

// Numbers outside their range must not lead outside the tensors; what comes out is not specified.
TEST_F(Compose, bad_routing_does_not_fault) {
  const Case c = parse_id("gdn/fwd/len=300,HK=1,HV=2,K=64,V=64/bf16/h0=normal=1/seed=1");
  const auto documents = documents_of(c.problem);
  const auto plan = kernels::cp::plan(documents, kernels::cp::make_table("zigzag", {documents, 2, -1, 2}), 64);
  Ranks ranks = ranks_of(c.problem, make_inputs(c), plan, kernels::cp::caps_of(plan));
  const kernels::cp::Caps& caps = ranks.routings[0].caps;
  const RankAnswer answer{{},
                          Tensor(DType::f32, {caps.segments, c.problem.HV, c.problem.V + c.problem.K, c.problem.K}),
                          Tensor(DType::f32, {caps.segments, c.problem.HV, c.problem.V, c.problem.K})};
  const Tensor gathered(DType::f32, {2 * caps.slots, c.problem.HV, c.problem.V + c.problem.K, c.problem.K});
  auto& forward = ranks.routings[0].forward;
  for (const std::int32_t bad : {-1, -2000000000, 2000000000, static_cast<std::int32_t>(caps.fragments + 1)}) {
    for (Tensor* tensor : {&forward.published, &forward.source, &forward.fold})
      std::ranges::fill(tensor->as<std::int32_t>(), bad);
    DeviceRank rank(c.problem, ranks.spans[0], ranks.routings[0], answer);
    EXPECT_NO_THROW(rank.published()) << bad;
    EXPECT_NO_THROW(rank.composed(gathered)) << bad;
  }
  std::ranges::fill(forward.source.as<std::int32_t>(), 0);  // folds of nothing
  DeviceRank rank(c.problem, ranks.spans[0], ranks.routings[0], answer);
  EXPECT_NO_THROW(rank.composed(gathered));
}

}  // namespace
}  // namespace deltagauge::validate::cp
