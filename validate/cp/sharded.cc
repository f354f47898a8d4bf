// The recipe: what surrounds the staged op on each rank.
#include "validate/cp/sharded.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "core/error.h"
#include "core/op.h"
#include "reference/cp.h"

namespace deltagauge::validate::cp {
namespace {

using kernels::cp::Plan, kernels::cp::RankPlan, kernels::cp::Routing, kernels::cp::Segment, reference::RowRange;

Tensor filled_with_nan(DType dtype, Shape shape) {
  Tensor t(dtype, std::move(shape));
  for (std::int64_t i = 0; i < t.numel(); ++i) t.store(i, std::numeric_limits<double>::quiet_NaN());
  return t;
}

// Copies rows of dim 0, all of the same layout.
void copy_rows(const Tensor& from, std::int64_t first, std::int64_t count, Tensor& to, std::int64_t at) {
  if (count == 0) return;
  const Tensor part = rows(from, first, count);
  const std::size_t row = part.nbytes() / static_cast<std::size_t>(count);
  std::memcpy(to.data() + static_cast<std::size_t>(at) * row, part.data(), part.nbytes());
}

void copy_state(const Tensor& from, std::int64_t n, Tensor& to, std::int64_t at) {
  const std::int64_t size = to.numel() / to.dim(0);
  for (std::int64_t i = 0; i < size; ++i) to.store(at * size + i, from.load(n * size + i));
}

std::int64_t value(const Tensor& t, std::int64_t at) { return t.as<std::int32_t>()[static_cast<std::size_t>(at)]; }

void transpose_transitions(Tensor& summaries) {
  const std::int64_t K = summaries.dim(3), V = summaries.dim(2) - K;
  for (std::int64_t map = 0; map < summaries.dim(0) * summaries.dim(1); ++map)
    for (std::int64_t i = 0; i < K; ++i)
      for (std::int64_t j = 0; j < i; ++j) {
        const std::int64_t base = (map * (V + K) + V) * K, a = base + i * K + j, b = base + j * K + i;
        const double held = summaries.load(a);
        summaries.store(a, summaries.load(b));
        summaries.store(b, held);
      }
}

struct RankCall {
  const Span& span;
  const Routing& routing;
  Fault fault;

  std::int64_t segments() const { return routing.caps.segments; }
  std::int64_t source(std::int64_t s) const { return value(routing.forward.source, s); }
  bool is_neighbour(std::int64_t s) const {
    if (fault == Fault::document_leak && s > 0 && source(s) == routing.caps.fragments) return true;
    return source(s) == routing.caps.fragments + 1;
  }
  // Of the segments whose map someone needs; the others' are empty.
  std::vector<RowRange> ranges() const {
    std::vector<bool> needed(static_cast<std::size_t>(segments()), false);
    for (std::int64_t slot = 0; slot < routing.caps.slots; ++slot)
      if (const std::int64_t s = value(routing.forward.published, slot); s < segments())
        needed[static_cast<std::size_t>(s)] = true;
    for (std::int64_t s = 1; s < segments(); ++s)
      if (is_neighbour(s)) needed[static_cast<std::size_t>(s - 1)] = true;
    std::vector<RowRange> ranges;
    for (std::int64_t s = 0; s < segments(); ++s) {
      const std::int64_t first = value(routing.cu_seqlens, s);
      ranges.push_back({first, needed[static_cast<std::size_t>(s)] ? value(routing.cu_seqlens, s + 1) : first});
    }
    return ranges;
  }
  // Segment s starts from its document's initial state, or from zero.
  void start(Tensor& states, std::int64_t s) const {
    if (!span.initial_state.empty()) return copy_state(span.initial_state, s, states, s);
    const std::int64_t size = states.numel() / states.dim(0);
    for (std::int64_t i = 0; i < size; ++i) states.store(s * size + i, 0);
  }
  // What this rank gives to all. Slots that stand for nothing stay NaN.
  Tensor published(const Tensor& summaries, const Tensor& entry) const {
    Shape shape = summaries.shape();
    shape[0] = routing.caps.slots;
    Tensor slots = filled_with_nan(summaries.dtype(), shape);
    for (std::int64_t slot = 0; slot < routing.caps.slots; ++slot) {
      const std::int64_t s = value(routing.forward.published, slot);
      if (s >= segments()) continue;
      copy_rows(summaries, s, 1, slots, slot);
      if (source(s) == routing.caps.fragments) reference::merge_bias(slots, slot, entry, s);
    }
    return slots;
  }
  void fold(std::int64_t s, const Tensor& gathered, Tensor& entry) const {
    const std::int64_t width = routing.world * routing.caps.slots;
    std::vector<std::int64_t> order;
    for (std::int64_t i = 0; i < width; ++i)
      if (const std::int64_t slot = value(routing.forward.fold, source(s) * width + i); slot < width) order.push_back(slot);
    if (fault == Fault::fold_by_rank) std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < order.size(); ++i)
      if (i == 0)
        reference::copy_bias(entry, s, gathered, order[i]);
      else
        reference::merge_state(entry, s, s, gathered, order[i]);
  }
};

}  // namespace

std::vector<std::int64_t> documents_of(const Problem& whole) { return whole.offsets(); }

Span span_of(const Problem& whole, const Tensors& inputs, const RankPlan& rank, const kernels::cp::Caps& caps) {
  Span span{whole, {}, {}};
  Problem& p = span.problem;
  p.layout = Layout::packed;
  p.ids.clear();
  p.capacity = caps.rows;
  p.h0 = {"none"};
  p.lengths.clear();
  for (const Segment& segment : rank.segments) p.lengths.push_back(segment.end - segment.first);
  p.lengths.resize(static_cast<std::size_t>(caps.segments), 0);
  for (const TensorSpec& spec : op_info(whole.op).inputs(whole)) {
    if (spec.name == "A_log" || spec.name == "dt_bias") span.inputs[spec.name] = get(inputs, spec.name);
    if (spec.token_dim != 0) continue;
    const Tensor& from = get(inputs, spec.name);
    Shape shape = from.shape();
    shape[0] = caps.rows;
    Tensor& to = span.inputs[spec.name] = filled_with_nan(from.dtype(), shape);
    for (const Segment& segment : rank.segments)
      copy_rows(from, segment.first, segment.end - segment.first, to, segment.row);
  }
  const Tensor* initial = find(inputs, "initial_state");
  if (!initial) return span;
  span.initial_state = Tensor(DType::f64, {caps.segments, p.HV, p.V, p.K});
  for (std::size_t s = 0; s < rank.segments.size(); ++s)
    if (rank.segments[s].starts)
      copy_state(*initial, rank.segments[s].document, span.initial_state, static_cast<std::int64_t>(s));
  return span;
}

Ranks ranks_of(const Problem& whole, const Tensors& inputs, const Plan& plan, const kernels::cp::Caps& caps) {
  Ranks ranks;
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    ranks.spans.push_back(span_of(whole, inputs, plan.ranks[r], caps));
    ranks.routings.push_back(kernels::cp::routing(plan, static_cast<std::int64_t>(r), caps));
  }
  return ranks;
}

RankAnswer run_rank(const reference::Staging& staging, const Span& span, const Routing& routing,
                    kernels::cp::Transport& transport, bool taps, Fault fault) {
  if (transport.memory() != kernels::cp::Memory::host)
    fail("context parallelism: expected a host transport, got one on a device");
  if (transport.world() != static_cast<std::size_t>(routing.world) ||
      transport.rank() != static_cast<std::size_t>(routing.rank))
    fail("context parallelism: routing: expected rank ", transport.rank(), " of ", transport.world(), ", got rank ",
         routing.rank, " of ", routing.world);
  const RankCall call{span, routing, fault};
  Tensors inputs = span.inputs;
  const bool raw = span.problem.raw_gate == Switch::on;
  if (fault == Fault::first_decay_dropped)
    for (std::int64_t s = 0; s < call.segments(); ++s)
      if (call.source(s) != routing.caps.fragments)
        for (std::int64_t h = 0; h < span.problem.HV; ++h)
          inputs[raw ? "raw_gate" : "g"].store(value(routing.cu_seqlens, s) * span.problem.HV + h,
                                               raw ? -std::numeric_limits<double>::infinity() : 0);

  const reference::CpPrepared prepared(span.problem, inputs, staging);
  RankAnswer answer;
  answer.summaries = prepared.summarise(call.ranges());
  if (fault == Fault::transition_on_left) transpose_transitions(answer.summaries);
  answer.entry = filled_with_nan(prepared.state_dtype(), {call.segments(), span.problem.HV, span.problem.V, span.problem.K});
  for (std::int64_t s = 0; s < call.segments(); ++s)
    if (call.source(s) == routing.caps.fragments) call.start(answer.entry, s);

  const Tensor own = call.published(answer.summaries, answer.entry);
  Shape shape = own.shape();
  shape[0] *= routing.world;
  Tensor gathered = filled_with_nan(own.dtype(), shape);
  transport.all_gather(own.data(), gathered.data(), own.nbytes(), nullptr);
  for (std::int64_t s = 0; s < call.segments(); ++s)
    if (call.is_neighbour(s))
      reference::merge_state(answer.entry, s, s - 1, answer.summaries, s - 1);
    else if (call.source(s) < routing.caps.fragments)
      call.fold(s, gathered, answer.entry);
  answer.run = prepared.run(answer.entry, taps);
  return answer;
}

Tensors assemble(const Problem& whole, const Plan& plan, const std::vector<RankAnswer>& ranks) {
  Tensors outputs;
  for (const TensorSpec& spec : op_info(whole.op).outputs(whole))
    outputs[spec.name] = filled_with_nan(spec.dtype, spec.shape);
  const auto states = outputs.find("final_state");
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (std::size_t s = 0; s < plan.ranks[r].segments.size(); ++s) {
      const Segment& segment = plan.ranks[r].segments[s];
      copy_rows(get(ranks[r].run, "o"), segment.row, segment.end - segment.first, outputs.find("o")->second, segment.first);
      if (segment.ends && states != outputs.end())
        copy_state(get(ranks[r].run, "final_state"), static_cast<std::int64_t>(s), states->second, segment.document);
    }
  return outputs;
}

std::vector<RankAnswer> run_ranks(const StagedOp& op, const Problem& whole, const Tensors& inputs, const Plan& plan,
                                  const kernels::cp::Caps& caps, bool taps, Fault fault) {
  const Plan used = fault == Fault::boundary_token_twice ? with_boundary_token_twice(plan) : plan;
  kernels::cp::Caps room = caps;
  if (fault == Fault::boundary_token_twice) ++room.rows;
  return op.ranks(ranks_of(whole, inputs, used, room), taps, fault);
}

Tensors run_chained(const reference::Staging& staging, const Problem& whole, const Tensors& inputs, const Plan& plan) {
  std::vector<Segment> walk;  // in token order
  for (const RankPlan& rank : plan.ranks) walk.insert(walk.end(), rank.segments.begin(), rank.segments.end());
  std::ranges::sort(walk, {}, [](const Segment& s) { return std::pair(s.document, s.first); });
  std::vector<RankPlan> steps;  // step i: segment i of each document
  std::size_t step = 0;
  for (std::size_t i = 0; i < walk.size(); ++i) {
    step = i > 0 && walk[i].document == walk[i - 1].document ? step + 1 : 0;
    if (step == steps.size()) steps.emplace_back().cu_seqlens = {0};
    steps[step].segments.push_back(walk[i]);
    steps[step].segments.back().row = steps[step].tokens();
    steps[step].cu_seqlens.push_back(steps[step].tokens() + walk[i].end - walk[i].first);
  }
  Plan chain = plan;
  chain.ranks = steps;
  std::vector<RankAnswer> answers;
  std::map<std::int64_t, std::int64_t> place;  // of a document in the step before
  for (const RankPlan& now : steps) {
    const auto segments = static_cast<std::int64_t>(now.segments.size());
    const Span span = span_of(whole, inputs, now, {segments, 0, 0, now.tokens(), 0});
    const reference::CpPrepared prepared(span.problem, span.inputs, staging);
    Tensor entry(prepared.state_dtype(), {segments, whole.HV, whole.V, whole.K});
    std::map<std::int64_t, std::int64_t> next;
    for (std::int64_t s = 0; s < segments; ++s) {
      const Segment& segment = now.segments[static_cast<std::size_t>(s)];
      next[segment.document] = s;
      if (!segment.starts)
        copy_state(get(answers.back().run, "final_state"), place.at(segment.document), entry, s);
      else if (!span.initial_state.empty())
        copy_state(span.initial_state, s, entry, s);
    }
    place = std::move(next);
    answers.emplace_back().run = prepared.run(entry, false);
  }
  return assemble(whole, chain, answers);
}

Plan with_boundary_token_twice(Plan plan) {
  for (RankPlan& rank : plan.ranks)
    for (std::size_t s = 0; s < rank.segments.size(); ++s) {
      Segment& segment = rank.segments[s];
      const bool last_here = s + 1 == rank.segments.size() || rank.segments[s + 1].first != segment.end;
      if (segment.ends || !last_here) continue;
      ++segment.end;
      for (std::size_t later = s + 1; later < rank.segments.size(); ++later) ++rank.segments[later].row;
      for (std::size_t later = s + 1; later < rank.cu_seqlens.size(); ++later) ++rank.cu_seqlens[later];
      return plan;
    }
  return plan;
}

}  // namespace deltagauge::validate::cp
