#include "validate/checks/ladder.h"

#include <algorithm>

#include "core/op.h"
#include "reference/staging.h"
#include "validate/device_runs.h"
#include "validate/ladder/promises.h"

namespace deltagauge::validate {
namespace {

using Reason = std::optional<std::string>;

Reason always(const Trial&) { return {}; }
Reason not_one_sequence(const Trial& trial) {
  if (trial.problem().sequences() < 2) return "one sequence: nothing to compare";
  return {};
}

// --- the batch ---------------------------------------------------------------------------------------------------------
bool expect_pieces(Trial& trial, const Pieces& pieces, std::string_view what) {
  const Problem small = pieces_problem(trial.problem(), pieces);
  return trial.expect_same(small, pieces, pieces_inputs(trial.problem(), pieces, small, trial.inputs()), what);
}

Verdict permute(Trial& trial) {
  const Pieces order = whole_sequences(trial.problem());
  Pieces reversed(order.rbegin(), order.rend()), rotated = order;
  std::rotate(rotated.begin(), rotated.begin() + 1, rotated.end());
  if (expect_pieces(trial, reversed, "sequences in reverse order") && order.size() > 2)
    expect_pieces(trial, rotated, "the first sequence moved to the end");
  return trial.verdict();
}

Verdict slice(Trial& trial) {
  const Pieces all = whole_sequences(trial.problem());
  Pieces even;
  for (std::size_t n = 0; n < all.size(); n += 2) even.push_back(all[n]);
  if (expect_pieces(trial, {all.begin() + 1, all.end()}, "without the first sequence") &&
      expect_pieces(trial, {all.begin(), all.end() - 1}, "without the last sequence"))
    expect_pieces(trial, even, "every second sequence");
  return trial.verdict();
}

Reason not_equal_lengths(const Trial& trial) {
  const auto& lengths = trial.problem().lengths;
  if (trial.problem().layout == Layout::dense) return {};
  if (std::any_of(lengths.begin(), lengths.end(), [&](std::int64_t length) { return length != lengths[0]; }))
    return "lengths differ: there is no dense form";
  return {};
}

Verdict dense(Trial& trial) {
  const bool packed = trial.problem().layout == Layout::packed;
  const Pieces all = whole_sequences(trial.problem());
  Problem other = pieces_problem(trial.problem(), all);
  other.layout = packed ? Layout::dense : Layout::packed;
  trial.expect_same(other, all, pieces_inputs(trial.problem(), all, other, trial.inputs()),
                    packed ? "layout=dense" : "layout=packed");
  return trial.verdict();
}

// --- rows past the end -------------------------------------------------------------------------------------------------
Reason no_rows_past_end(const Trial& trial) {
  if (trial.problem().layout == Layout::dense) return "layout=dense: there are no rows past the end";
  return {};
}

// Inputs with `capacity` rows, of which those past the end hold value(first row, element of the row).
template <class Value>
Tensors with_suffix(const Problem& problem, const Tensors& inputs, const Problem& longer, Value value) {
  Tensors out = pieces_inputs(problem, whole_sequences(problem), longer, inputs);
  for (const TensorSpec& spec : op_info(longer.op).inputs(longer)) {
    if (spec.token_dim != 0) continue;
    Tensor& tensor = out[spec.name];
    const std::int64_t width = tensor.dim(0) ? tensor.numel() / tensor.dim(0) : 0;
    for (std::int64_t i = longer.tokens() * width; i < tensor.numel(); ++i) tensor.store(i, value(tensor, i % width));
  }
  return out;
}

Verdict suffix(Trial& trial) {
  constexpr std::int64_t kMoreRows = 65;
  const Problem& problem = trial.problem();
  const Pieces all = whole_sequences(problem);
  Problem longer = problem;
  longer.capacity = problem.rows() > problem.tokens() ? problem.rows() : problem.tokens() + kMoreRows;
  const auto first_row = [&](const Tensor& tensor, std::int64_t j) { return problem.tokens() ? tensor.load(j) : 1.0; };
  if (!trial.expect_same(longer, all, with_suffix(problem, trial.inputs(), longer, first_row),
                         "rows past the end that repeat the first token"))
    return trial.verdict();
  longer.capacity += kMoreRows;
  const auto huge = [](const Tensor&, std::int64_t) { return 1e30; };
  trial.expect_same(longer, all, with_suffix(problem, trial.inputs(), longer, huge), "more rows past the end, of 1e30");
  return trial.verdict();
}

// --- prefill split -----------------------------------------------------------------------------------------------------
Reason no_split(const Trial& trial) {
  const Problem& p = trial.problem();
  if (op_info(p.op).one_token) return "op " + p.op + " takes one token a sequence";
  if (p.op != "gdn") return "op " + p.op + " carries no state";
  if (p.state != DType::f32)
    return "state=" + std::string(name(p.state)) + ": the state is rounded where the two calls meet";
  const auto& staging = reference::staging(trial.backend().staging(p));
  if (staging.accumulate == reference::Accumulate::f64)
    return "not promised: staging " + std::string(staging.name) + " carries the state in f64, and a call hands it on in f32";
  if (std::none_of(p.lengths.begin(), p.lengths.end(), [&](std::int64_t length) { return length > p.chunk; }))
    return "no sequence is longer than a chunk of " + std::to_string(p.chunk);
  return {};
}

// The first part[n] tokens of each sequence, then the rest from the state that they left.
bool expect_split(Trial& trial, const std::vector<std::int64_t>& part, std::string_view what) {
  const Problem& p = trial.problem();
  Pieces before, after;
  for (std::int64_t n = 0; n < p.sequences(); ++n) {
    const std::int64_t length = p.lengths[static_cast<std::size_t>(n)], cut = part[static_cast<std::size_t>(n)];
    before.push_back({n, 0, cut});
    after.push_back({n, cut, length - cut});
  }
  Problem first = pieces_problem(p, before), rest = pieces_problem(p, after);
  first.final_state = Switch::on;
  if (rest.h0.kind == "none") rest.h0 = {"zero"};
  rest.has = "on";
  const std::string text(what);
  Tensors answer;
  if (!trial.expect_same(first, before, pieces_inputs(p, before, first, trial.inputs()), text + ", the first call", &answer))
    return false;
  Tensors inputs = pieces_inputs(p, after, rest, trial.inputs());
  inputs["initial_state"] = get(answer, "final_state");
  if (const auto has = inputs.find("has_initial_state"); has != inputs.end())
    for (std::int64_t n = 0; n < p.sequences(); ++n) has->second.store(n, 1);
  return trial.expect_same(rest, after, inputs, text + ", the second call");
}

Verdict split(Trial& trial) {
  const Problem& p = trial.problem();
  std::vector<std::int64_t> one, last;  // a chunk, and all chunks but the last
  for (const std::int64_t length : p.lengths) {
    one.push_back(std::min(p.chunk, length));
    last.push_back(length ? (length - 1) / p.chunk * p.chunk : 0);
  }
  if (expect_split(trial, one, "split after the first chunk")) expect_split(trial, last, "split before the last chunk");
  return trial.verdict();
}

// --- the device --------------------------------------------------------------------------------------------------------
DevicePlan* on_device(Plan& plan) { return dynamic_cast<DevicePlan*>(&plan); }
Verdict not_on_device() { return skip("not offered: the plan does not run on a device"); }

Verdict graph(Trial& trial) {
  DevicePlan* plan = on_device(trial.plan());
  if (!plan) return not_on_device();
  trial.base();
  const auto launches = run_in_graph(*plan, trial.inputs());
  for (std::size_t i = 0; i < launches.size(); ++i)
    if (!trial.expect_same(launches[i], "launch " + std::to_string(i + 1) + " of a graph")) break;
  return trial.verdict();
}

Verdict load(Trial& trial) {
  DevicePlan* plan = on_device(trial.plan());
  if (!plan) return not_on_device();
  trial.base();
  const auto other = trial.backend().plan(trial.problem(), trial.inputs(), {});
  const auto answer = run_under_load(*plan, trial.inputs(), *on_device(*other));
  if (!answer) return skip("the other stream had nothing left to do before the call ended");
  trial.expect_same(*answer, "beside calls on another stream");
  return trial.verdict();
}

// --- other schedules ---------------------------------------------------------------------------------------------------
using Others = std::vector<const Backend*> (Promises::*)() const;

std::vector<const Backend*> others(const Trial& trial, Others which) {
  const Promises* promises = promises_of(trial.backend());
  return promises ? (promises->*which)() : std::vector<const Backend*>{};
}

template <Others which>
Reason none_offered(const Trial& trial) {
  if (others(trial, which).empty())
    return which == &Promises::schedules ? "not offered: the backend has one schedule"
                                         : "not offered: the backend has no context parallelism";
  return {};
}

template <Others which>
Verdict expect_others(Trial& trial) {
  for (const Backend* other : others(trial, which))
    if (!trial.expect_same(*other, "as " + std::string(other->name()))) break;
  return trial.verdict();
}

constexpr Rung kRungs[] = {
    {"ladder.repeat", "one plan run again, planned anew and without intermediates: every bit stays", always, repeat},
    {"ladder.permute", "sequences in another order: every bit stays", not_one_sequence, permute},
    {"ladder.separate", "each sequence alone: every bit stays", not_one_sequence, each_separate},
    {"ladder.slice", "some of the sequences: every bit stays", not_one_sequence, slice},
    {"ladder.dense", "dense against packed: every bit stays", not_equal_lengths, dense},
    {"ladder.suffix", "other rows past the end, and more of them: every bit stays", no_rows_past_end, suffix},
    {"ladder.split", "prefill split at chunk multiples, the state handed on: every bit stays", no_split, split},
    {"ladder.graph", "a captured graph against the eager call: every bit stays", always, graph},
    {"ladder.load", "beside work on another stream: every bit stays", always, load},
    {"ladder.schedule", "other schedules, static or persistent: every bit stays", none_offered<&Promises::schedules>,
     expect_others<&Promises::schedules>},
    {"ladder.cp", "other degrees of context parallelism: every bit stays", none_offered<&Promises::cp_degrees>,
     expect_others<&Promises::cp_degrees>},
};

}  // namespace

std::span<const Rung> rungs() { return kRungs; }

Verdict Ladder::run(Context& context, const Backend& backend) const {
  Trial trial(context, backend, {.taps = true});
  if (const Promises* promises = promises_of(backend))
    if (const auto why = promises->not_promised(rung_.name(), trial.problem())) return skip("not promised: " + *why);
  if (const auto why = rung_.not_for(trial)) return skip(*why);
  return rung_.climb(trial);
}

}  // namespace deltagauge::validate
