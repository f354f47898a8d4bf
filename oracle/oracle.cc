#include "oracle/oracle.h"

#include <algorithm>

#include "core/error.h"
#include "core/op.h"
#include "oracle/certify.h"
#include "oracle/chunk.h"
#include "oracle/forward.h"

namespace deltagauge::oracle {
namespace {

constexpr std::pair<Precision, std::string_view> kNames[] = {{Precision::automatic, "auto"},
                                                             {Precision::f64, "f64"},
                                                             {Precision::dd, "dd"},
                                                             {Precision::quad, "quad"},
                                                             {Precision::oct, "oct"}};

void check_inputs(const Problem& problem, const Tensors& inputs) {
  check(problem);
  for (const TensorSpec& spec : op_info(problem.op).inputs(problem)) {
    const Tensor& t = get(inputs, spec.name);
    if (t.shape() != spec.shape) fail(spec.name, ": expected shape ", to_string(spec.shape), ", got ", to_string(t.shape()));
    if (is_float(spec.dtype) != is_float(t.dtype()))
      fail(spec.name, ": expected a dtype like ", deltagauge::name(spec.dtype), ", got ", deltagauge::name(t.dtype()));
  }
  const auto absent = [&](std::string_view tensor, std::string_view why) {
    if (find(inputs, tensor))
      fail(tensor, ": expected no such tensor (", why, "), got shape ", to_string(get(inputs, tensor).shape()));
  };
  if (problem.op == "gdn" && problem.h0.kind == "none") absent("initial_state", "h0=none");
  const bool raw_gate = problem.op == "gate" || problem.raw_gate == Switch::on;
  if (raw_gate && problem.a_log == Switch::off) absent("A_log", "a_log=off");
  if (problem.op == "gdn") absent(raw_gate ? "g" : "raw_gate", raw_gate ? "raw_gate=on" : "raw_gate=off");
  const auto expect = [&](std::string_view tensor, const auto& want, std::string_view from) {
    const Tensor* t = find(inputs, tensor);
    if (!t) return;
    const std::vector<double> got = to_f64(*t);
    for (std::size_t i = 0; i < want.size(); ++i)
      if (i >= got.size() || got[i] != static_cast<double>(want[i]))
        fail(tensor, "[", i, "]: expected ", want[i], " (", from, " of the problem), got ", i < got.size() ? got[i] : -1);
  };
  expect("cu_seqlens", problem.offsets(), "the lengths");
  expect("state_indices", problem.state_indices(), "idx");
  expect("has_initial_state", problem.has_initial_state(), "has");
}

Forward forward(std::string_view op, Precision precision) {
  switch (precision) {
    case Precision::f64:
      return forward_in<double>(op);
    case Precision::dd:
      return forward_in<DoubleDouble>(op);
    case Precision::quad:
      return forward_quad(op);
    default:
      return forward_oct(op);
  }
}

Answer answer_in(Precision precision, const Call& call, Switch taps) {
  Answer answer;
  answer.used = precision;
  answer.outputs = unanswered_outputs(call.problem);
  if (taps == Switch::on) answer.taps = chunk_taps(call);
  forward(call.problem.op, precision)(call, answer);
  return answer;
}

}  // namespace

std::string_view name(Precision precision) {
  for (const auto& [value, text] : kNames)
    if (value == precision) return text;
  return "?";
}

Precision parse_precision(std::string_view text) {
  std::string known;
  for (const auto& [value, name] : kNames) {
    if (name == text) return value;
    known += " " + std::string(name);
  }
  fail("oracle: expected one of", known, ", got '", text, "'");
}

Answer answer(const Problem& problem, const Tensors& inputs, const Options& options) {
  check_inputs(problem, inputs);
  const Call call{problem, inputs, options};
  const Switch taps = options.taps && problem.op == "gdn" ? Switch::on : Switch::off;
  if (options.precision != Precision::automatic) return answer_in(options.precision, call, taps);
  Answer exact = answer_in(Precision::dd, call, taps);
  Answer plain = answer_in(Precision::f64, call, Switch::off);
  plain.disagreement = exact.disagreement = disagreement(plain.outputs, exact.outputs);
  plain.taps = std::move(exact.taps);  // dd in either case
  if (plain.disagreement <= kCertain) return plain;
  exact.taps = std::move(plain.taps);
  return exact;
}

Answer answer_chunkwise(const Problem& problem, const Tensors& inputs, std::int64_t chunk) {
  check_inputs(problem, inputs);
  if (problem.op != "gdn") fail("answer_chunkwise: expected op gdn, got ", problem.op);
  if (chunk < 1) fail("answer_chunkwise: expected a chunk of at least 1 token, got ", chunk);
  const Options options;
  const Call call{problem, inputs, options};
  Answer answer;
  answer.used = Precision::dd;
  answer.outputs = unanswered_outputs(problem);
  double* o = answer.outputs.find("o")->second.as<double>().data();
  const auto final_state = answer.outputs.find("final_state");
  double* states = final_state == answer.outputs.end() ? nullptr : final_state->second.as<double>().data();
  const std::vector<Sequence> all = sequences(problem);
#pragma omp parallel for schedule(dynamic) if (problem.tokens() * problem.HV * problem.K * problem.V > kWorthThreads)
  for (std::int64_t item = 0; item < problem.sequences() * problem.HV; ++item) {
    const std::int64_t h = item % problem.HV, V = problem.V, K = problem.K;
    const Sequence& s = all[static_cast<std::size_t>(item / problem.HV)];
    if (s.slot <= 0) {  // no slot: zero rows
      for (std::int64_t t = s.first; t < s.end; ++t) std::fill_n(o + (t * problem.HV + h) * V, V, 0.0);
      continue;
    }
    const std::int64_t state = problem.slots ? s.slot : s.n;
    const ChunkwiseHead head = chunkwise_head(call, s, h, chunk);
    for (std::int64_t t = s.first; t < s.end; ++t)
      for (std::int64_t v = 0; v < V; ++v) o[(t * problem.HV + h) * V + v] = static_cast<double>(head.o.at(t - s.first, v));
    for (std::int64_t i = 0; states && i < V * K; ++i)
      states[(state * problem.HV + h) * V * K + i] = static_cast<double>(head.S.at(i % K, i / K));
  }
  return answer;
}

}  // namespace deltagauge::oracle
