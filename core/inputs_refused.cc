// What inputs.h refuses: values and sizes on which no kernel can be judged.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/error.h"
#include "core/inputs.h"
#include "core/op.h"
#include "core/portable_math.h"

namespace deltagauge {
namespace {

Shape index_of(const Shape& shape, std::int64_t element) {
  Shape index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; element /= shape[d]) index[d] = element % shape[d];
  return index;
}

bool allowed(std::string_view tensor, double x) {
  if (std::isfinite(x)) return true;
  return (tensor == "g" && x < 0) || (tensor == "raw_gate" && !std::isnan(x));
}

void refuse_non_finite(const Problem& p, const Tensors& inputs) {
  for (const TensorSpec& spec : op_info(p.op).inputs(p)) {
    if (!is_float(spec.dtype)) continue;
    const Tensor& t = get(inputs, spec.name);
    const std::int64_t width = t.dim(0) ? t.numel() / t.dim(0) : 0, active = spec.token_dim == 0 ? p.tokens() : t.dim(0);
    std::vector<bool> read(static_cast<std::size_t>(t.dim(0)), !(p.slots && spec.name == "initial_state"));
    const auto slots = p.state_indices();
    const auto has = p.has_initial_state();
    for (std::size_t n = 0; n < slots.size(); ++n)
      if (slots[n] > 0 && has[n] && spec.name == "initial_state") read[static_cast<std::size_t>(slots[n])] = true;
    std::int64_t bad = active * width;  // the first
#pragma omp parallel for reduction(min : bad)
    for (std::int64_t i = 0; i < active * width; ++i)
      if (read[static_cast<std::size_t>(i / width)] && !allowed(spec.name, t.load(i))) bad = std::min(bad, i);
    if (bad < active * width)
      refuse("inputs: ", spec.name, to_string(index_of(t.shape(), bad)), " = ", t.load(bad), ": expected ",
             spec.name == "g"          ? "a log decay <= 0"
             : spec.name == "raw_gate" ? "a number"
                                       : "a finite value",
             " that ", name(spec.dtype), " holds");
  }
}

// Refuses gdn inputs whose recurrence grows by itself, and gates and strengths of the sign that no model has. One token
// multiplies the state along k by exp(g) (1 - beta |k|^2), so with beta |k|^2 > 2 it can grow. Over a run of tokens growth
// is at most the product of the factors above 1; once that passes 2^8 it has amplified a bf16 rounding to the size of the
// value, and no kernel can be judged on it.
void refuse_divergence(const Problem& p, const Tensors& inputs) {
  if (p.op != "gdn" || p.diverge == Switch::on) return;
  const Tensor &k = get(inputs, "k"), g = log_decays(p, inputs), &beta = get(inputs, "beta");
  const std::int64_t group = p.HV / p.HK, tokens = p.tokens();
  for (std::int64_t h = 0; h < p.HV; ++h) {
    double growth = 0;  // log2 of the largest amplification of a run that ends here
    for (std::int64_t row = 0, n = -1, token = 0, end = 0; row < tokens; ++row, ++token) {
      while (row == end) {  // the first row of the next sequence that has any
        end += p.lengths[static_cast<std::size_t>(++n)];
        token = 0;
        growth = 0;
      }
      double square = 0;
      for (std::int64_t d = 0; d < p.K; ++d) {
        const double x = k.load((row * p.HK + h / group) * p.K + d);
        square += x * x;
      }
      if (p.l2norm == Switch::on) square = 1;
      const double b = beta.load(row * p.HV + h), gate = g.load(row * p.HV + h);
      if (!(gate <= 0))
        refuse("inputs: g[", row, ", ", h, "] = ", gate, ": expected a log decay <= 0; pass diverge=on to run it anyway");
      if (!(b >= 0))
        refuse("inputs: beta[", row, ", ", h, "] = ", b, ": expected a strength >= 0; pass diverge=on to run it anyway");
      growth += gate / 0x1.62e42fefa39efp-1;
      const double factor = std::fabs(1 - b * square);
      if (factor > 1) growth += std::log2(factor);
      if (!(growth > 0)) growth = 0;
      if (growth > 8)
        refuse("inputs: the recurrence diverges at token ", token, " of sequence ",
               (p.ids.empty() ? n : p.ids[static_cast<std::size_t>(n)]), ", head ", h, ": beta |k|^2 = ", b * square,
               " > 2 with decay exp(", gate, "), amplification 2^", growth, " so far; pass diverge=on to run it anyway");
    }
  }
}

}  // namespace

Tensor log_decays(const Problem& p, const Tensors& inputs) {
  Tensor decays(DType::f64, {p.rows(), p.HV});
  const Tensor& gate = get(inputs, p.raw_gate == Switch::on ? "raw_gate" : "g");
  const Tensor *A_log = find(inputs, "A_log"), *bias = find(inputs, "dt_bias");
  const auto times = [](double a, double y) { return y == 0 ? 0 : a * y; };  // an infinite a, too
  for (std::int64_t i = 0; i < p.rows() * p.HV; ++i) {
    double g = i < p.tokens() * p.HV ? gate.load(i) : std::numeric_limits<double>::quiet_NaN();
    if (p.raw_gate == Switch::on) {
      const std::int64_t h = i % p.HV;
      const double a = p.a_log == Switch::on ? portable::exp(A_log->load(h)) : 1, y = g + bias->load(h);
      g = p.transform == "bounded" ? p.lower_bound * portable::sigmoid(times(a, y)) : -times(a, portable::softplus(y));
    }
    decays.store(i, g);
  }
  return decays;
}

void refuse_inputs(const Problem& p, const Tensors& inputs) {
  refuse_non_finite(p, inputs);
  refuse_divergence(p, inputs);
}

void check_memory(const Problem& p) {
  const double memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  double total = 0, most = 0;
  TensorSpec largest;
  const OpInfo& op = op_info(p.op);
  for (const auto& specs : {op.inputs(p), op.outputs(p)})
    for (const TensorSpec& spec : specs) {
      double bytes = static_cast<double>(size_of(spec.dtype));
      for (const std::int64_t size : spec.shape) bytes *= static_cast<double>(size);
      total += bytes;
      if (bytes > most) most = bytes, largest = spec;
    }
  total += static_cast<double>(p.slots) * static_cast<double>(p.slot_pad) * static_cast<double>(size_of(p.state));
  if (total > memory)
    fail("sizes: expected tensors within the ", memory, " bytes of this machine's memory, got ", total, " bytes; ",
         largest.name, " ", to_string(largest.shape), " alone takes ", most);
}

}  // namespace deltagauge
