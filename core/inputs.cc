#include "core/inputs.h"

#include <Random123/philox.h>

#include <array>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/op.h"
#include "core/portable_math.h"

namespace deltagauge {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// The random numbers of one tensor: word i of element (sequence, token, head, channel).
class Draw {
 public:
  Draw(std::uint64_t seed, std::string_view tensor) {
    std::uint64_t h = 0xcbf29ce484222325ull;  // FNV-1a of the name
    for (const char c : tensor) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
    h ^= seed * 0x9e3779b97f4a7c15ull;  // odd constant: distinct seeds stay distinct
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
    h ^= h >> 31;
    key_ = {{static_cast<std::uint32_t>(h), static_cast<std::uint32_t>(h >> 32)}};
  }
  std::array<std::uint32_t, 4> words(std::int64_t n, std::int64_t t, std::int64_t h, std::int64_t d) const {
    const auto w = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
    const auto r = r123::Philox4x32()({{w(n), w(t), w(h), w(d)}}, key_);
    return {r[0], r[1], r[2], r[3]};
  }
  double uniform(std::int64_t n, std::int64_t t, std::int64_t h, std::int64_t d) const {
    return to_unit(words(n, t, h, d), 0);
  }
  double normal(std::int64_t n, std::int64_t t, std::int64_t h, std::int64_t d) const {  // Box-Muller
    const auto w = words(n, t, h, d);
    return std::sqrt(-2 * portable::log(to_unit(w, 0))) * portable::cos_turn(to_unit(w, 2));
  }

 private:
  static double to_unit(const std::array<std::uint32_t, 4>& w, std::size_t i) {  // (0, 1), 52 bits
    return ((static_cast<double>(w[i] >> 6) * 0x1p26 + static_cast<double>(w[i + 1] >> 6)) + 0.5) * 0x1p-52;
  }
  r123::Philox4x32::key_type key_;
};

struct Row {  // a packed row and whose it is
  std::int64_t row, sequence, token;
};

std::vector<Row> active_rows(const Problem& p) {
  std::vector<Row> rows;
  rows.reserve(static_cast<std::size_t>(p.tokens()));
  for (std::size_t n = 0; n < p.lengths.size(); ++n)
    for (std::int64_t t = 0; t < p.lengths[n]; ++t)
      rows.push_back({static_cast<std::int64_t>(rows.size()), p.ids.empty() ? static_cast<std::int64_t>(n) : p.ids[n], t});
  return rows;
}

void poison_rows(Tensor& tensor, std::int64_t first) {
  const std::int64_t end = tensor.numel(), stride = tensor.dim(0) ? end / tensor.dim(0) : 0;
  for (std::int64_t i = first * stride; i < end; ++i) tensor.store(i, kNan);
}

// Fills [T, ...] per active row and head: fill(row, head, out) writes the channels.
template <class Fill>
Tensor per_row(const Problem& p, const TensorSpec& spec, const std::vector<Row>& rows, Fill fill) {
  Tensor tensor(spec.dtype, spec.shape);
  const std::int64_t heads = spec.shape[1], channels = spec.shape.size() > 2 ? spec.shape[2] : 1;
#pragma omp parallel
  {
    std::vector<double> out(static_cast<std::size_t>(channels));
#pragma omp for
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (std::int64_t h = 0; h < heads; ++h) {
        fill(rows[i], h, out);
        for (std::int64_t d = 0; d < channels; ++d)
          tensor.store((rows[i].row * heads + h) * channels + d, out[static_cast<std::size_t>(d)]);
      }
  }
  poison_rows(tensor, p.tokens());
  return tensor;
}

void normalise(std::vector<double>& x, double norm) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  const double scale = sum > 0 ? norm / std::sqrt(sum) : 0;
  for (double& v : x) v *= scale;
}

// Keys and queries of the named regime: unit vectors times norm.
void fill_key(const Problem& p, const Draw& own, const Draw& common, const Row& r, std::int64_t h, double norm,
              std::vector<double>& out) {
  const std::string& kind = p.keys.kind;
  const std::int64_t n = r.sequence;
  const auto size = static_cast<std::int64_t>(out.size());
  const auto direction = [&](std::int64_t which) {
    for (std::int64_t d = 0; d < size; ++d) out[static_cast<std::size_t>(d)] = common.normal(n, which, h, d);
    normalise(out, 1);
  };
  if (kind == "onehot") {
    for (double& x : out) x = 0;
    out[own.words(n, r.token, h, 0)[0] % static_cast<std::uint32_t>(size)] = norm;
    return;
  }
  if (kind == "repeated") {
    direction(0);
  } else if (kind == "alternating") {
    direction(0);
    if (r.token % 2) norm = -norm;
  } else if (kind == "two-interleaved") {
    direction(r.token % 2);
  } else {
    for (std::int64_t d = 0; d < size; ++d) out[static_cast<std::size_t>(d)] = own.normal(n, r.token, h, d);
    if (kind == "rho") {  // cosine rho between any two: a shared direction and an own one
      normalise(out, std::sqrt(1 - p.keys.value));
      std::vector<double> mine = out;
      direction(0);
      for (std::size_t d = 0; d < out.size(); ++d) out[d] = std::sqrt(p.keys.value) * out[d] + mine[d];
    }
  }
  normalise(out, 1);
  for (double& x : out) x *= norm;
}

double log_sigmoid(double x) { return -portable::softplus(-x); }

// dt_bias and A as the model families initialise them: A ~ U(0.01, 16), dt ~ log-uniform [1e-3, 0.1], softplus(dt_bias) =
// dt.
double draw_a(const Draw& a, std::int64_t h) { return 0.01 + 15.99 * a.uniform(0, 0, h, 0); }
double draw_dt_bias(const Draw& b, std::int64_t h, std::int64_t d) {
  const double dt = 1e-3 * portable::exp(b.uniform(0, 0, h, d) * portable::log(100));
  return portable::log(portable::exp(dt) - 1);
}

constexpr double kEdgeGates[] = {0,   -0.0,  -kInf, -1e38,  -5.91,  -5.914, -5.92,  -11.09,
                                 -20, -87.3, -88.8, -103.3, -104.0, -316.0, -1e-30, -1e-3};

double draw_gate(const Problem& p, const Draw& draw, const Draw& a, const Draw& b, const Row& r, std::int64_t h) {
  const std::string& kind = p.gate.kind;
  const auto w = draw.words(r.sequence, r.token, h, 1);
  const bool edge = w[0] % 4 == 0;
  const double edge_value = kEdgeGates[w[1] % std::size(kEdgeGates)];
  if (p.data.kind == "lattice") return kind == "edge" && w[0] % 32 == 0 ? (w[1] % 2 ? -kInf : -1e38) : 0;
  if (kind == "none" || (kind == "mixed" && h % 4 == 3)) return 0;
  if (kind == "constant") return p.gate.value;
  if (kind == "edge" && edge) return edge_value;
  const double x = draw.normal(r.sequence, r.token, h, 0);
  if (kind == "model") return -draw_a(a, h) * portable::softplus(x + draw_dt_bias(b, h, 0));
  return kind == "strong" ? log_sigmoid(x) : log_sigmoid(x) / 16;
}

constexpr double kTinyBetas[] = {0, 1e-12, 1e-10, 1e-8, 1e-4};

double draw_beta(const Problem& p, const Draw& draw, const Row& r, std::int64_t h) {
  const auto w = draw.words(r.sequence, r.token, h, 1);
  if (p.data.kind == "lattice") return w[0] % 4 != 0;
  if (p.beta.kind == "const") return p.beta.value;
  if (p.beta.kind == "tiny" && w[0] % 4 == 0) return kTinyBetas[w[1] % std::size(kTinyBetas)];
  const double x = draw.normal(r.sequence, r.token, h, 0);
  if (p.beta.kind == "near1") return portable::sigmoid(8 + x / 2);
  if (p.beta.kind == "wide") return 2 * portable::sigmoid(2 * x);
  return portable::sigmoid(x);
}

std::int64_t small_integer(const Draw& draw, std::int64_t n, std::int64_t t, std::int64_t h, std::int64_t d) {
  return static_cast<std::int64_t>(draw.words(n, t, h, d)[0] % 17) - 8;  // -8 .. 8
}

// Lattice keys: one signed unit vector. Lattice queries: the sum of up to three. All stages stay integers below 2^8.
void fill_lattice(const Draw& draw, const Row& r, std::int64_t h, int terms, std::vector<double>& out) {
  for (double& x : out) x = 0;
  for (int i = 0; i < terms; ++i) {
    const auto w = draw.words(r.sequence, r.token, h, i);
    out[w[0] % out.size()] = w[1] % 2 ? 1 : -1;
  }
}

// The states of sequences or, NaN wherever no sequence may read, of a pool.
Tensor draw_states(const Case& c, const TensorSpec& spec) {
  const Problem& p = c.problem;
  const Draw draw(c.seed, spec.name);
  Tensor state(spec.dtype, spec.shape);
  const auto slots = p.state_indices();
  const auto has = p.has_initial_state();
  if (p.slots) poison_rows(state, 0);
#pragma omp parallel for collapse(2)
  for (std::int64_t n = 0; n < p.sequences(); ++n)
    for (std::int64_t h = 0; h < p.HV; ++h) {
      const auto place = static_cast<std::size_t>(n);
      if (p.slots && (slots[place] <= 0 || !has[place])) continue;
      std::int64_t i = ((p.slots ? slots[place] : n) * p.HV + h) * p.V * p.K;
      for (std::int64_t v = 0; v < p.V; ++v)
        for (std::int64_t k = 0; k < p.K; ++k, ++i) {
          const std::int64_t id = p.ids.empty() ? n : p.ids[place];
          const double x = p.h0.kind == "zero"        ? 0
                           : p.data.kind == "lattice" ? static_cast<double>(small_integer(draw, id, v, h, k))
                                                      : p.h0.value * draw.normal(id, v, h, k);
          state.store(i, x);
        }
    }
  return state;
}

// One row of q or k; raw: to be normalised by the op.
void draw_key(const Case& c, std::string_view name, const Draw& draw, const Draw& common, bool raw, const Row& r,
              std::int64_t h, std::vector<double>& out) {
  const bool key = name == "k";
  if (c.problem.data.kind == "lattice") return fill_lattice(draw, r, h, key ? 1 : 3, out);
  const double norm = raw ? std::sqrt(static_cast<double>(c.problem.K)) : 1;
  fill_key(c.problem, draw, common, r, h, key ? norm * c.problem.kscale : norm, out);
}

void draw_value(const Problem& p, const Draw& draw, const Row& r, std::int64_t h, std::vector<double>& out) {
  for (std::size_t d = 0; d < out.size(); ++d) {
    const auto i = static_cast<std::int64_t>(d);
    out[d] = p.data.kind == "lattice" ? static_cast<double>(small_integer(draw, r.sequence, r.token, h, i))
                                      : p.v.value * draw.normal(r.sequence, r.token, h, i);
  }
}

// What a regime of g and beta is before the transforms. A_log and dt_bias are as the model families have them under none and
// model; else log(1/16) and 0 under mild, mixed and edge, 0 and 0 under strong and constant; with the bounded transform, 0
// and -5 under mild, mixed and edge, 0 and 0 under strong and constant.
constexpr double kEdgeRawGates[] = {0, -0.0, kInf, -kInf, 19.9, 20, 20.1, 87, 88, 89, 100, 1e4, -20, -88, -103, -1e4};

bool as_models(const Problem& p) { return p.gate.kind == "none" || p.gate.kind == "model"; }
bool weak(const Problem& p) { return p.gate.kind != "strong" && p.gate.kind != "constant"; }

// A_log and dt_bias, [HV].
Tensor draw_gate_parameter(const Problem& p, const TensorSpec& spec, const Draw& draw) {
  Tensor tensor(spec.dtype, spec.shape);
  const bool bounded = p.transform == "bounded";
  for (std::int64_t h = 0; h < p.HV; ++h)
    if (spec.name == "A_log")
      tensor.store(h, as_models(p) ? portable::log(draw_a(draw, h)) : weak(p) && !bounded ? portable::log(1.0 / 16) : 0);
    else
      tensor.store(h, as_models(p) ? draw_dt_bias(draw, h, 0) : weak(p) && bounded ? -5 : 0);
  return tensor;
}

double inverse_softplus(double x) {
  if (x > 50) return x;
  return x == 0 ? -kInf : portable::log(x < 0x1p-27 ? x : portable::exp(x) - 1);
}

// The raw gate whose transform is g, for A_log and dt_bias of 0.
double raw_of(const Problem& p, double g) {
  if (p.transform != "bounded") return inverse_softplus(-g);
  const double s = g == 0 ? 0 : g / p.lower_bound;
  return s == 0 ? -kInf : s == 1 ? kInf : portable::log(s / (1 - s));
}

double draw_raw_gate(const Problem& p, const Draw& draw, const Row& r, std::int64_t h) {
  const std::string& kind = p.gate.kind;
  const auto w = draw.words(r.sequence, r.token, h, 1);
  if (p.data.kind == "lattice") return kind == "edge" && w[0] % 32 == 0 ? kInf : -kInf;
  if (kind == "none" || (kind == "mixed" && h % 4 == 3)) return -kInf;  // g = 0
  if (kind == "constant") return raw_of(p, p.gate.value);
  if (kind == "edge" && w[0] % 4 == 0) return kEdgeRawGates[w[1] % std::size(kEdgeRawGates)];
  return draw.normal(r.sequence, r.token, h, 0);
}

Tensor draw_gdn(const Case& c, const TensorSpec& spec, const std::vector<Row>& rows) {
  const Problem& p = c.problem;
  if (spec.name == "initial_state") return draw_states(c, spec);
  const Draw draw(c.seed, spec.name), common(c.seed, "direction"), a(c.seed, "A_log"), b(c.seed, "dt_bias");
  if (spec.token_dim < 0) return draw_gate_parameter(p, spec, draw);
  return per_row(p, spec, rows, [&](const Row& r, std::int64_t h, std::vector<double>& out) {
    if (spec.name == "q" || spec.name == "k") {
      draw_key(c, spec.name, draw, common, p.l2norm == Switch::on, r, h, out);
    } else if (spec.name == "g") {
      out[0] = draw_gate(p, draw, a, b, r, h);
    } else if (spec.name == "raw_gate") {
      out[0] = draw_raw_gate(p, draw, r, h);
    } else if (spec.name == "beta") {
      out[0] = draw_beta(p, draw, r, h);
    } else {
      draw_value(p, draw, r, h, out);
    }
  });
}

double draw_raw_beta(const Problem& p, const Draw& draw, const Row& r, std::int64_t h) {
  constexpr double kFar = 1e4;  // sigmoid is 0 or 1 there
  const auto logit = [&](double beta) {
    const double s = p.neg_eigval == Switch::on ? beta / 2 : beta;
    return s <= 0 ? -kFar : s >= 1 ? kFar : portable::log(s / (1 - s));
  };
  const auto w = draw.words(r.sequence, r.token, h, 1);
  if (p.beta.kind == "const") return logit(p.beta.value);
  if (p.beta.kind == "tiny" && w[0] % 4 == 0) return logit(kTinyBetas[w[1] % std::size(kTinyBetas)]);
  const double x = draw.normal(r.sequence, r.token, h, 0);
  return p.beta.kind == "near1" ? 8 + x / 2 : p.beta.kind == "wide" ? 2 * x : x;
}

Tensor draw_packed(const Case& c, const TensorSpec& spec, const std::vector<Row>& rows) {
  Tensor packed(spec.dtype, spec.shape);
  const Draw common(c.seed, "direction");
  std::int64_t first = 0;  // of the section in a row
  for (std::size_t s = 0; s < spec.sections.size(); ++s) {
    const std::string_view name = std::array<std::string_view, 3>{"q", "k", "v"}[s];
    const Draw draw(c.seed, name);
    const auto [heads, width] = spec.sections[s];
    std::vector<double> out(static_cast<std::size_t>(width));
    for (const Row& r : rows)
      for (std::int64_t h = 0; h < heads; ++h) {
        if (name == "v")
          draw_value(c.problem, draw, r, h, out);
        else
          draw_key(c, name, draw, common, true, r, h, out);
        for (std::size_t d = 0; d < out.size(); ++d)
          packed.store(r.row * spec.shape[1] + first + h * width + static_cast<std::int64_t>(d), out[d]);
      }
    first += heads * width;
  }
  poison_rows(packed, c.problem.tokens());
  return packed;
}

Tensor draw_gdn_decode(const Case& c, const TensorSpec& spec, const std::vector<Row>& rows) {
  const Problem& p = c.problem;
  if (spec.name == "initial_state") return draw_states(c, spec);
  if (spec.name == "packed_qkv") return draw_packed(c, spec, rows);
  const Draw draw(c.seed, spec.name);
  if (spec.token_dim < 0) return draw_gate_parameter(p, spec, draw);
  return per_row(p, spec, rows, [&](const Row& r, std::int64_t h, std::vector<double>& out) {
    out[0] = spec.name == "raw_gate" ? draw_raw_gate(p, draw, r, h) : draw_raw_beta(p, draw, r, h);
  });
}

Tensor draw_tensor(const Case& c, const TensorSpec& spec, const std::vector<Row>& rows) {
  const Problem& p = c.problem;
  if (spec.name == "cu_seqlens") {
    Tensor cu(spec.dtype, spec.shape);
    const auto offsets = p.offsets();
    for (std::size_t i = 0; i < offsets.size(); ++i) cu.store(static_cast<std::int64_t>(i), static_cast<double>(offsets[i]));
    return cu;
  }
  if (spec.name == "state_indices" || spec.name == "has_initial_state") {
    Tensor per_sequence(spec.dtype, spec.shape);
    const auto slots = p.state_indices();
    const auto has = p.has_initial_state();
    for (std::size_t n = 0; n < slots.size(); ++n)
      per_sequence.store(static_cast<std::int64_t>(n),
                         spec.name == "state_indices" ? static_cast<double>(slots[n]) : static_cast<double>(has[n]));
    return per_sequence;
  }
  if (p.op == "gdn") return draw_gdn(c, spec, rows);
  if (p.op == "gdn_decode") return draw_gdn_decode(c, spec, rows);
  const Draw draw(c.seed, spec.name);
  if (spec.name == "A_log" || spec.name == "dt_bias") {
    Tensor tensor(spec.dtype, spec.shape);
    const std::int64_t channels = spec.shape.size() > 1 ? spec.shape[1] : 1;
    for (std::int64_t i = 0; i < tensor.numel(); ++i)
      tensor.store(i,
                   spec.name == "A_log" ? portable::log(draw_a(draw, i)) : draw_dt_bias(draw, i / channels, i % channels));
    return tensor;
  }
  return per_row(p, spec, rows, [&](const Row& r, std::int64_t h, std::vector<double>& out) {
    for (std::size_t d = 0; d < out.size(); ++d)
      out[d] = p.v.value * draw.normal(r.sequence, r.token, h, static_cast<std::int64_t>(d));
  });
}

// * on the token dimension means the active rows: what lies past the end stays poison.
void apply(const Override& o, const Problem& p, Tensors& inputs) {
  const auto it = inputs.find(o.tensor);
  if (it == inputs.end()) get(inputs, o.tensor);  // throws, naming what there is
  Tensor& tensor = it->second;
  if (o.index.size() != tensor.shape().size())
    fail("override ", o.tensor, ": expected ", tensor.shape().size(), " indices for shape ", to_string(tensor.shape()),
         ", got ", o.index.size());
  int token_dim = -1;
  for (const TensorSpec& spec : op_info(p.op).inputs(p))
    if (spec.name == o.tensor) token_dim = spec.token_dim;
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (std::size_t d = 0; d < o.index.size(); ++d) {
    const std::string& text = o.index[d];
    const std::int64_t size = tensor.shape()[d];
    const auto colon = text.find(':');
    std::int64_t first = 0, last = token_dim == static_cast<int>(d) ? p.tokens() : size;
    if (text != "*") {
      first = std::stoll(text);
      last = colon == std::string::npos ? first + 1 : std::stoll(text.substr(colon + 1));
    }
    if (first < 0 || last > size || first > last)
      fail("override ", o.tensor, ": index ", text, " is outside dimension ", d, " of shape ", to_string(tensor.shape()));
    ranges.emplace_back(first, last);
  }
  const auto visit = [&](auto&& self, std::size_t d, std::int64_t offset) -> void {
    if (d == ranges.size()) return tensor.store(offset, o.value);
    for (std::int64_t i = ranges[d].first; i < ranges[d].second; ++i) self(self, d + 1, offset + i * tensor.strides()[d]);
  };
  visit(visit, 0, 0);
}

constexpr RegimeInfo kInfo[] = {
    {"keys", "iid", "unit vectors, independent"},
    {"keys", "rho=R", "unit vectors that share a direction: cosine R between any two"},
    {"keys", "repeated", "one unit vector for all tokens of a sequence and head; q too"},
    {"keys", "alternating", "one unit vector, sign changing every token; q too"},
    {"keys", "two-interleaved", "two unit vectors in turn; q too"},
    {"keys", "onehot", "a random unit coordinate vector"},
    {"gate", "none", "g = 0"},
    {"gate", "mild", "logsigmoid(N(0,1)) / 16"},
    {"gate", "strong", "logsigmoid(N(0,1))"},
    {"gate", "mixed", "mild, with every fourth head at 0"},
    {"gate", "model", "-A softplus(N(0,1) + dt_bias), A ~ U(0.01,16), softplus(dt_bias) log-uniform in [0.001, 0.1]"},
    {"gate", "edge", "mild, a quarter of the tokens from 0 -0.0 -inf -1e38 -5.914 -87.3 -103.3 and neighbours"},
    {"gate", "constant=G", "g = G, G <= 0"},
    {"beta", "sigmoid", "sigmoid(N(0,1))"},
    {"beta", "const=B", "beta = B, 0 <= B <= 2"},
    {"beta", "tiny", "sigmoid, a quarter of the tokens from 0 1e-12 1e-10 1e-8 1e-4"},
    {"beta", "near1", "sigmoid(8 + N(0,1)/2), about 0.9997"},
    {"beta", "wide", "2 sigmoid(2 N(0,1)), in (0, 2)"},
    {"v", "normal=S", "N(0, S^2)"},
    {"h0", "none", "no initial state is passed"},
    {"h0", "zero", "an initial state of zeros is passed"},
    {"h0", "normal=S", "N(0, S^2)"},
    {"data", "random", "as the other axes say"},
    {"data", "lattice", "k = +-e, q a sum of three +-e, v and h0 integers in [-8, 8], beta 0 or 1, g 0 (or -inf, -1e38)"},
    {"data", "file", "tensors someone gave (validate --tensors): no seed draws them"},
};

}  // namespace

std::span<const RegimeInfo> regimes() { return kInfo; }

Tensors make_inputs(const Case& c) {
  const Problem& p = c.problem;
  check(p);
  check_memory(p);
  if (p.data.kind == "file") fail("data=file: expected the tensors themselves (--tensors FILE), since no seed draws them");
  const std::vector<Row> rows = active_rows(p);
  Tensors inputs;
  for (const TensorSpec& spec : op_info(p.op).inputs(p)) inputs.emplace(spec.name, draw_tensor(c, spec, rows));
  for (const Override& o : c.overrides) apply(o, p, inputs);
  refuse_inputs(p, inputs);
  return inputs;
}

}  // namespace deltagauge
