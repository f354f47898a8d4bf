#include "validate/tensors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/error.h"
#include "core/inputs.h"
#include "core/op.h"
#include "reports/printable.h"

namespace deltagauge::validate {
namespace {

constexpr std::string_view kFloats16[] = {"f32", "bf16", "f16"};
constexpr std::string_view kTensors[] = {"q",
                                         "k",
                                         "v",
                                         "g",
                                         "beta",
                                         "raw_gate",
                                         "A_log",
                                         "dt_bias",
                                         "o",
                                         "initial_state",
                                         "state_indices",
                                         "has_initial_state",
                                         "cu_seqlens",
                                         "final_state"};
// What set the inputs when they were drawn: it says nothing about tensors that are given.
constexpr std::string_view kDrawing[] = {"ids", "gate", "keys", "beta", "v", "h0", "data", "kscale", "seed"};
constexpr std::int64_t kMaxBatch = 1 << 24;
constexpr std::string_view kStates[] = {"f32", "bf16"};

const Tensor& required(const Tensors& tensors, std::string_view missing_of) {
  std::string missing, held;
  for (const std::string_view wanted : {"q", "k", "v"})
    if (!find(tensors, wanted)) missing += " " + std::string(wanted);
  for (const auto& [name, tensor] : tensors) held += " " + name + " " + to_string(tensor.shape());
  if (!missing.empty())
    fail("tensors missing from the file:", missing,
         "; expected q [T, HK, K], k [T, HK, K], v [T, HV, V] of f32, bf16 or f16, got", held.empty() ? " none" : held);
  return get(tensors, missing_of);
}

DType dtype_among(std::string_view tensor, DType got, std::span<const std::string_view> allowed) {
  std::string known;
  for (const std::string_view one : allowed) {
    if (name(got) == one) return got;
    known += " " + std::string(one);
  }
  fail(tensor, ": expected dtype", known, ", got ", name(got));
}

void require_known(const Tensors& tensors) {
  std::string known;
  for (const std::string_view name : kTensors) known += " " + std::string(name);
  for (const auto& [name, tensor] : tensors)
    if (std::find(std::begin(kTensors), std::end(kTensors), name) == std::end(kTensors))
      fail("tensor '", reports::printable(name.substr(0, 60)), "': not supported for op gdn, which takes", known);
}

// Reads the tensors of one file against the sizes found so far.
class Reader {
 public:
  explicit Reader(const Tensors& tensors) : tensors_(tensors) {
    const Shape& q = required(tensors, "q").shape();
    const Shape& v = required(tensors, "v").shape();
    if (q.size() != 3 && q.size() != 4) fail("q: expected [T, HK, K] or [B, T, HK, K], got ", to_string(q));
    if (v.size() != q.size()) fail("v: expected as many dimensions as q ", to_string(q), ", got ", to_string(v));
    lead_.assign(q.begin(), q.end() - 2);
    HK = q.end()[-2], K = q.end()[-1], HV = v.end()[-2], V = v.end()[-1];
    T = lead_.back() * (lead_.size() == 2 ? lead_[0] : 1);
    for (const std::int64_t size : {HK, K})
      if (size < 1) fail("q: expected sizes of at least 1, got ", to_string(q));
    for (const std::int64_t size : {HV, V})
      if (size < 1) fail("v: expected sizes of at least 1, got ", to_string(v));
    if (batched() && (lead_[0] < 1 || lead_[0] > kMaxBatch))
      fail("q: expected a batch of 1 to ", kMaxBatch, " sequences, got ", to_string(q));
  }

  std::int64_t T, HK, HV, K, V;
  bool batched() const { return lead_.size() == 2; }
  std::int64_t batch() const { return batched() ? lead_[0] : 1; }
  bool has(std::string_view tensor) const { return find(tensors_, tensor); }

  // A tensor with one row a token, flattened to [T, tail...].
  Tensor tokens(std::string_view tensor, const Shape& tail) const {
    Shape expected = lead_, flat{T};
    expected.insert(expected.end(), tail.begin(), tail.end());
    flat.insert(flat.end(), tail.begin(), tail.end());
    return reshaped(exact(tensor, expected), flat);
  }
  const Tensor& exact(std::string_view tensor, const Shape& expected) const {
    const Tensor& t = get(tensors_, tensor);
    if (t.shape() != expected) fail(tensor, ": expected shape ", to_string(expected), ", got ", to_string(t.shape()));
    return t;
  }
  static Tensor reshaped(const Tensor& t, const Shape& shape) {  // t is contiguous: it came from a file
    Tensor out(t.dtype(), shape);
    std::copy_n(t.data(), t.nbytes(), out.data());
    return out;
  }

 private:
  const Tensors& tensors_;
  Shape lead_;  // [T] or [B, T]
};

// cu_seqlens to lengths; its end may be below T.
std::vector<std::int64_t> lengths_from(const Tensor& cu, std::int64_t T) {
  if (cu.shape().size() != 1 || cu.dim(0) < 2) fail("cu_seqlens: expected shape [N + 1], got ", to_string(cu.shape()));
  if (cu.dtype() != DType::i32 && cu.dtype() != DType::i64)
    fail("cu_seqlens: expected dtype i32 or i64, got ", name(cu.dtype()));
  if (T > std::numeric_limits<std::int32_t>::max()) fail("cu_seqlens: expected at most 2^31 - 1 tokens, got ", T);
  const auto at = [&](std::int64_t i) {
    const auto n = static_cast<std::size_t>(i);
    return cu.dtype() == DType::i32 ? std::int64_t{cu.as<std::int32_t>()[n]} : cu.as<std::int64_t>()[n];
  };
  if (at(0) != 0) fail("cu_seqlens[0]: expected 0, got ", at(0));
  std::vector<std::int64_t> lengths;
  for (std::int64_t n = 1; n < cu.dim(0); ++n) {
    if (at(n) < at(n - 1) || at(n) > T)
      fail("cu_seqlens[", n, "]: expected a value in [", at(n - 1), ", T = ", T, "], got ", at(n));
    lengths.push_back(at(n) - at(n - 1));
  }
  return lengths;
}

// The first rows of tensor (all when rows is -1) hold ok(value) everywhere.
template <class Ok>
void expect_values(std::string_view tensor, const Tensor& t, std::int64_t active, std::string_view what, Ok ok) {
  const std::int64_t width = t.dim(0) ? t.numel() / t.dim(0) : 0, count = active * width;
  std::int64_t bad = 0, first = 0;
  for (std::int64_t i = count; i-- > 0;)
    if (!ok(t.load(i))) ++bad, first = i;
  if (!bad) return;
  Shape index(t.shape().size());
  for (std::size_t d = index.size(), rest = static_cast<std::size_t>(first); d-- > 0;) {
    index[d] = static_cast<std::int64_t>(rest % static_cast<std::size_t>(t.shape()[d]));
    rest /= static_cast<std::size_t>(t.shape()[d]);
  }
  fail(tensor, ": expected ", what, "; ", bad, " of ", count, " values are not, first at ", to_string(index), ": ",
       t.load(first));
}

Tensor filled(Shape shape, double value) {
  Tensor t(DType::f32, std::move(shape));
  for (std::int64_t i = 0; i < t.numel(); ++i) t.store(i, value);
  return t;
}

// What a tensor of the pool holds for each sequence, as the axes idx and has write it.
std::string per_sequence(const Tensors& tensors, std::string_view tensor, std::int64_t N, bool flags) {
  const Tensor& t = get(tensors, tensor);
  if (t.shape() != Shape{N}) fail(tensor, ": expected shape [", N, "], got ", to_string(t.shape()));
  const bool fits = flags ? t.dtype() == DType::boolean : t.dtype() == DType::i32 || t.dtype() == DType::i64;
  if (!fits) fail(tensor, ": expected dtype ", flags ? name(DType::boolean) : "i32 or i64", ", got ", name(t.dtype()));
  std::string text;
  for (std::int64_t n = 0; n < N; ++n)
    text += (n ? "+" : "") + std::to_string(static_cast<std::int64_t>(flags ? t.load(n) != 0 : t.load(n)));
  return text;
}

// slots, idx, has: of the tensors, whatever the metadata said.
void pool_from(const Tensors& tensors, Problem& p) {
  p.slots = p.slot_pad = 0;
  p.idx = "iota", p.has = "on";
  p.h0 = find(tensors, "initial_state") ? Regime{"normal", 1, true} : Regime{"none"};
  if (!find(tensors, "state_indices")) {
    if (find(tensors, "has_initial_state")) fail("has_initial_state: expected state_indices beside it, got none");
    return;
  }
  if (!find(tensors, "initial_state"))
    fail("initial_state: expected a pool [P, HV, V, K] of f32 or bf16 beside state_indices, got none");
  const Shape& pool = get(tensors, "initial_state").shape();
  if (pool.size() != 4 || pool[0] < 2)
    fail("initial_state: expected a pool [P, HV, V, K] of at least 2 slots beside state_indices, got ", to_string(pool));
  p.slots = pool[0];
  p.idx = per_sequence(tensors, "state_indices", p.sequences(), false);
  if (find(tensors, "has_initial_state")) p.has = per_sequence(tensors, "has_initial_state", p.sequences(), true);
}

void check_values(const Tensors& inputs, std::int64_t active, bool pool) {
  const auto finite = [](double x) { return std::isfinite(x); };
  for (const std::string_view t : {"q", "k", "v"}) expect_values(t, get(inputs, t), active, "finite values", finite);
  if (const Tensor* g = find(inputs, "g"))
    expect_values("g", *g, active, "natural-log decays, at most 0", [](double x) { return x <= 0; });
  if (const Tensor* raw = find(inputs, "raw_gate"))
    expect_values("raw_gate", *raw, active, "numbers", [](double x) { return !std::isnan(x); });
  for (const std::string_view t : {"A_log", "dt_bias"})
    if (const Tensor* of_head = find(inputs, t)) expect_values(t, *of_head, of_head->dim(0), "finite values", finite);
  expect_values("beta", get(inputs, "beta"), active, "values in [0, 2]", [](double x) { return x >= 0 && x <= 2; });
  if (const Tensor* h0 = find(inputs, "initial_state"); h0 && !pool)  // refuse_inputs looks at the slots that are read
    expect_values("initial_state", *h0, h0->dim(0), "finite values", finite);
}

// raw_gate and a_log: of the tensors. The transform has to be said: a model is served wrongly by the other one, silently.
void gate_from(const Tensors& tensors, std::span<const std::pair<std::string, std::string>> settings, Problem& p) {
  const bool raw = find(tensors, "raw_gate");
  if (raw && find(tensors, "g")) fail("raw_gate: expected no g beside it, got both");
  for (const std::string_view name : {"A_log", "dt_bias"})
    if (!raw && find(tensors, name)) fail(name, ": expected raw_gate beside it, got none");
  const bool said = p.raw_gate == Switch::on || std::any_of(settings.begin(), settings.end(), [](const auto& setting) {
                      return setting.first == "transform";
                    });
  if (raw && !said)
    fail(
        "raw_gate: expected --set transform=softplus or --set transform=bounded, since the tensors do not show which, "
        "got neither");
  if (!raw) {
    const Problem plain;
    p.transform = plain.transform, p.lower_bound = plain.lower_bound;
  }
  p.raw_gate = raw ? Switch::on : Switch::off;
  p.a_log = raw && !find(tensors, "A_log") ? Switch::off : Switch::on;
}

// The case as far as the file's metadata and the settings say; tensors say the rest.
Case base_case(const Safetensors& file, std::string_view op, std::span<const std::pair<std::string, std::string>> settings) {
  Case c;
  if (const auto id = file.metadata.find("deltagauge.case"); id != file.metadata.end()) {
    try {
      c = parse_id(id->second);
    } catch (const Error& e) {
      fail("deltagauge.case in the file: ", e.what());
    }
  }
  if (c.problem.op != op) fail("deltagauge.case in the file: expected op ", op, ", got ", c.problem.op);
  gate_from(file.tensors, settings, c.problem);
  const Switch raw_gate = c.problem.raw_gate, a_log = c.problem.a_log;
  for (const auto& [axis, text] : settings) {
    if (std::find(std::begin(kDrawing), std::end(kDrawing), axis) != std::end(kDrawing))
      fail("--set ", axis, "=", text, ": expected no axis that says how inputs are drawn, since the file gives them");
    set_axis(c, axis, text);
  }
  c.problem.raw_gate = raw_gate, c.problem.a_log = a_log;  // the tensors say, whatever is set
  return c;
}

void sizes_from(const Reader& read, const Tensors& tensors, Problem& p) {
  p.HK = read.HK, p.HV = read.HV, p.K = read.K, p.V = read.V;
  p.ids.clear();
  p.capacity = 0;
  if (const Tensor* cu = find(tensors, "cu_seqlens")) {
    if (read.batch() != 1) fail("q: expected a batch of 1 beside cu_seqlens, got ", read.batch());
    p.layout = Layout::packed;
    p.lengths = lengths_from(*cu, read.T);
    if (p.tokens() != read.T) p.capacity = read.T;
  } else {
    p.layout = Layout::dense;
    p.lengths.assign(static_cast<std::size_t>(read.batch()), read.T / read.batch());
  }
  pool_from(tensors, p);
}

// [HV], which a model may hold in 16 bits and a call takes in f32.
Tensor of_heads(const Reader& read, std::string_view tensor, const Problem& p) {
  const Tensor& t = read.exact(tensor, {p.HV});
  dtype_among(tensor, t.dtype(), kFloats16);
  return cast(t, DType::f32);
}

Tensors inputs_from(const Reader& read, const Tensors& tensors, Problem& p) {
  Tensors inputs;
  p.io = dtype_among("q", get(tensors, "q").dtype(), kFloats16);
  for (const std::string_view t : {"k", "v"})
    if (get(tensors, t).dtype() != p.io)
      fail(t, ": expected dtype ", name(p.io), " as q, got ", name(get(tensors, t).dtype()));
  inputs["q"] = read.tokens("q", {p.HK, p.K});
  inputs["k"] = read.tokens("k", {p.HK, p.K});
  inputs["v"] = read.tokens("v", {p.HV, p.V});
  const std::string gate = p.raw_gate == Switch::on ? "raw_gate" : "g";
  inputs[gate] = read.has(gate) ? read.tokens(gate, {p.HV}) : filled({read.T, p.HV}, 0);
  inputs["beta"] = read.has("beta") ? read.tokens("beta", {p.HV}) : filled({read.T, p.HV}, 1);
  p.gate_dtype = dtype_among(gate, inputs[gate].dtype(), kFloats16);
  p.beta_dtype = dtype_among("beta", inputs["beta"].dtype(), kFloats16);
  if (p.a_log == Switch::on && p.raw_gate == Switch::on) inputs["A_log"] = of_heads(read, "A_log", p);
  if (p.raw_gate == Switch::on) inputs["dt_bias"] = read.has("dt_bias") ? of_heads(read, "dt_bias", p) : filled({p.HV}, 0);
  if (read.has("initial_state")) {
    inputs["initial_state"] = read.exact("initial_state", {p.slots ? p.slots : p.sequences(), p.HV, p.V, p.K});
    p.state = dtype_among("initial_state", inputs["initial_state"].dtype(), kStates);
  }
  if (p.slots) {
    Tensor &indices = inputs["state_indices"] = Tensor(DType::i32, {p.sequences()}),
           &has = inputs["has_initial_state"] = Tensor(DType::boolean, {p.sequences()});
    const auto slots = p.state_indices();
    const auto flags = p.has_initial_state();
    for (std::size_t n = 0; n < slots.size(); ++n) {
      indices.store(static_cast<std::int64_t>(n), static_cast<double>(slots[n]));
      has.store(static_cast<std::int64_t>(n), flags[n] ? 1 : 0);
    }
  }
  if (p.layout == Layout::packed) {
    Tensor cu(DType::i32, {p.sequences() + 1});
    const auto offsets = p.offsets();
    for (std::size_t n = 0; n < offsets.size(); ++n) cu.store(static_cast<std::int64_t>(n), static_cast<double>(offsets[n]));
    inputs["cu_seqlens"] = std::move(cu);
  }
  return inputs;
}

Tensors outputs_from(const Reader& read, const Tensors& tensors, Problem& p) {
  Tensors outputs;
  const Tensor* state = find(tensors, "final_state");
  const Shape states{p.slots ? p.slots : p.sequences(), p.HV, p.V, p.K};
  if (state && !read.has("o"))
    fail("o: expected ", to_string({read.T, p.HV, p.V}), " of ", name(p.io), " beside final_state, got none");
  if (!read.has("o")) return outputs;
  outputs["o"] = read.tokens("o", {p.HV, p.V});
  if (outputs["o"].dtype() != p.io) fail("o: expected dtype ", name(p.io), " as q, got ", name(outputs["o"].dtype()));
  if (!state && p.slots)
    fail("final_state: expected the pool ", to_string(states), " of ", name(p.state), " after the call beside o, got none");
  if (!state) return outputs;
  outputs["final_state"] = read.exact("final_state", states);
  const DType dtype = dtype_among("final_state", state->dtype(), kStates);
  if (read.has("initial_state") && dtype != p.state)
    fail("final_state: expected dtype ", name(p.state), " as initial_state, got ", name(dtype));
  p.state = dtype;
  return outputs;
}

class FilePlan : public Plan {
 public:
  explicit FilePlan(const Tensors& outputs) : outputs_(outputs) {}
  void run() override {}
  Tensors outputs() const override { return outputs_; }

 private:
  const Tensors& outputs_;
};

class FileBackend : public Backend {
 public:
  FileBackend(Tensors outputs, std::string staging) : outputs_(std::move(outputs)), staging_(std::move(staging)) {}
  std::string_view name() const override { return "file"; }
  std::string_view summary() const override { return "the outputs that stand in the file"; }
  std::optional<std::string> unsupported(const Problem&) const override { return {}; }
  std::string_view staging(const Problem&) const override { return staging_; }
  std::unique_ptr<Plan> plan(const Problem&, const Tensors&, const PlanOptions&) const override {
    return std::make_unique<FilePlan>(outputs_);
  }

 private:
  Tensors outputs_;
  std::string staging_;
};

}  // namespace

GivenCase case_from_tensors(const Safetensors& file, std::string_view op,
                            std::span<const std::pair<std::string, std::string>> settings) {
  if (op != "gdn") fail("--op: expected gdn with --tensors, got '", op, "'");
  GivenCase given{base_case(file, op, settings), {}, {}};
  Problem& p = given.test.problem;
  require_known(file.tensors);
  const Reader read(file.tensors);
  sizes_from(read, file.tensors, p);
  p.data = {"file"};
  check(p);
  check_memory(p);
  given.inputs = inputs_from(read, file.tensors, p);
  given.outputs = outputs_from(read, file.tensors, p);
  check(p);
  check_values(given.inputs, p.tokens(), p.slots > 0);
  refuse_inputs(p, given.inputs);
  for (const auto& [axis, text] : settings) {
    Case other = given.test;
    set_axis(other, axis, text);
    if (!(other == given.test)) fail("--set ", axis, "=", text, ": the tensors of the file say otherwise");
  }
  return given;
}

std::unique_ptr<Backend> file_backend(Tensors outputs, std::string staging) {
  return std::make_unique<FileBackend>(std::move(outputs), std::move(staging));
}

std::string default_staging(DType io) { return io == DType::f32 ? "recurrent.f32" : "chunk64.io"; }

Statistics statistics(const Tensor& tensor) {
  Statistics s{tensor.numel(), 0, 0, 0, 0, 0};
  double sum = 0, squares = 0, finite = 0;
  for (const double x : to_f64(tensor)) {
    if (!std::isfinite(x)) {
      ++s.not_finite;
      continue;
    }
    s.least = finite ? std::min(s.least, x) : x;
    s.most = finite ? std::max(s.most, x) : x;
    ++finite, sum += x, squares += x * x;
  }
  if (finite) s.mean = sum / finite, s.rms = std::sqrt(squares / finite);
  return s;
}

}  // namespace deltagauge::validate
