// Routing: plans written into padded tensors.
#include "kernels/cp/routing.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "core/error.h"

namespace deltagauge::kernels::cp {
namespace {

std::int64_t count_of(const auto& list) { return static_cast<std::int64_t>(list.size()); }

Tensor filled(Shape shape, std::int64_t value) {
  Tensor t(DType::i32, std::move(shape));
  std::ranges::fill(t.as<std::int32_t>(), static_cast<std::int32_t>(value));
  return t;
}

void put(Tensor& t, std::int64_t at, std::int64_t value) {
  t.as<std::int32_t>()[static_cast<std::size_t>(at)] = static_cast<std::int32_t>(value);
}

FlowRouting flow_routing(const RankPlan& rank, const Flow& flow, const Caps& caps, std::int64_t world) {
  FlowRouting to{filled({caps.slots}, caps.segments), filled({caps.segments}, caps.fragments),
                 filled({caps.fragments, world * caps.slots}, world * caps.slots)};
  for (std::int64_t i = 0; i < count_of(flow.published); ++i)
    put(to.published, i, flow.published[static_cast<std::size_t>(i)]);
  for (std::int64_t s = 0; s < count_of(flow.sources); ++s) {
    const Source& source = flow.sources[static_cast<std::size_t>(s)];
    if (source.kind == Source::Kind::neighbour) put(to.source, s, caps.fragments + 1);
    if (source.kind != Source::Kind::fold) continue;
    const std::int64_t f = rank.segments[static_cast<std::size_t>(s)].fragment;
    put(to.source, s, f);
    for (std::int64_t i = 0; i < count_of(source.slots); ++i) {
      const Slot& slot = source.slots[static_cast<std::size_t>(i)];
      put(to.fold, f * world * caps.slots + i, slot.rank * caps.slots + slot.slot);
    }
  }
  return to;
}

void route_history(const Plan& plan, std::int64_t own, const Caps& caps, Routing& to) {
  const RankPlan& rank = plan.ranks[static_cast<std::size_t>(own)];
  const std::int64_t W = caps.history;
  std::int64_t row = 0;
  for (std::int64_t f = 0; f < count_of(rank.fragments); ++f) {
    const std::int64_t tokens =
        rank.fragments[static_cast<std::size_t>(f)].end - rank.fragments[static_cast<std::size_t>(f)].first;
    row += tokens;
    for (std::int64_t j = std::max<std::int64_t>(0, W - tokens); j < W; ++j) put(to.tails, f * W + j, row - W + j);
  }
  for (std::int64_t s = 0; s < count_of(rank.segments); ++s) {
    const Segment& segment = rank.segments[static_cast<std::size_t>(s)];
    if (segment.starts || rank.forward.sources[static_cast<std::size_t>(s)].kind != Source::Kind::fold) continue;
    const std::int64_t begin = plan.cu_seqlens[static_cast<std::size_t>(segment.document)];
    for (std::int64_t r = 0; r < plan.world(); ++r) {
      const auto& fragments = plan.ranks[static_cast<std::size_t>(r)].fragments;
      for (std::int64_t f = 0; f < count_of(fragments); ++f) {
        const Fragment& from = fragments[static_cast<std::size_t>(f)];
        if (from.end > segment.first) continue;
        for (std::int64_t token = std::max({begin, segment.first - W, from.first}); token < from.end; ++token)
          put(to.history, s * W + W - (segment.first - token), (r * caps.fragments + f) * W + W - (from.end - token));
      }
    }
  }
}

void require(std::string_view what, std::int64_t got, std::int64_t cap, std::int64_t rank) {
  if (got > cap) fail("cp routing: ", what, " of rank ", rank, ": expected at most ", cap, ", got ", got);
}

// What stands for nothing is the number past the last, and all of them are int32.
void require_int32(std::string_view what, std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (a > kMost || b > kMost || a * b > kMost)
    fail("cp routing: ", what, ": expected at most ", kMost, ", got ", a, " x ", b);
}

}  // namespace

Caps caps_of(const Plan& plan, std::int64_t history) {
  Caps caps{0, 0, plan.slots(), 0, history};
  for (const RankPlan& rank : plan.ranks) {
    caps.segments = std::max(caps.segments, count_of(rank.segments));
    caps.fragments = std::max(caps.fragments, count_of(rank.fragments));
    caps.rows = std::max(caps.rows, rank.tokens());
  }
  return caps;
}

Caps widest(const Caps& a, const Caps& b) {
  return {std::max(a.segments, b.segments), std::max(a.fragments, b.fragments), std::max(a.slots, b.slots),
          std::max(a.rows, b.rows), std::max(a.history, b.history)};
}

Routing routing(const Plan& plan, std::int64_t own, const Caps& caps) {
  if (own < 0 || own >= plan.world()) fail("cp routing: rank: expected 0 .. ", plan.world() - 1, ", got ", own);
  if (caps.history < 0) fail("cp routing: history: expected at least 0, got ", caps.history);
  require_int32("rows", caps.rows, 1);
  require_int32("segments", caps.segments, 1);
  require_int32("slots of all ranks", plan.world(), caps.slots);
  require_int32("fragments of all ranks", plan.world(), caps.fragments);
  require_int32("history of all fragments", plan.world() * caps.fragments, caps.history);
  for (std::int64_t r = 0; r < plan.world(); ++r) {
    const RankPlan& rank = plan.ranks[static_cast<std::size_t>(r)];
    require("segments", count_of(rank.segments), caps.segments, r);
    require("fragments", count_of(rank.fragments), caps.fragments, r);
    require("rows", rank.tokens(), caps.rows, r);
    require("slots", std::max(count_of(rank.forward.published), count_of(rank.reverse.published)), caps.slots, r);
  }
  const RankPlan& rank = plan.ranks[static_cast<std::size_t>(own)];
  Routing to{.caps = caps,
             .rank = own,
             .world = plan.world(),
             .cu_seqlens = filled({caps.segments + 1}, rank.tokens()),
             .document = filled({caps.segments}, -1),
             .terminal = filled({caps.segments}, 0),
             .forward = flow_routing(rank, rank.forward, caps, plan.world()),
             .reverse = flow_routing(rank, rank.reverse, caps, plan.world()),
             .tails = filled({caps.fragments, caps.history}, caps.rows),
             .history = filled({caps.segments, caps.history}, plan.world() * caps.fragments * caps.history)};
  for (std::int64_t s = 0; s < count_of(rank.segments); ++s) {
    const Segment& segment = rank.segments[static_cast<std::size_t>(s)];
    put(to.cu_seqlens, s, segment.row);
    put(to.document, s, segment.document);
    put(to.terminal, s, segment.ends);
  }
  route_history(plan, own, caps, to);
  return to;
}

}  // namespace deltagauge::kernels::cp
