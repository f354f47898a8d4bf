// l2norm: row normalisation, docs/math.md#l2norm. x, y [T, HK, K]: y = x / sqrt(sum x^2 + 1e-6), the eps on the sum.
#include "core/ops/ops.h"

namespace deltagauge {
namespace {

std::vector<TensorSpec> inputs(const Problem& p) {
  std::vector<TensorSpec> specs{{"x", p.io, {p.rows(), p.HK, p.K}, 0}};
  if (p.layout == Layout::packed) specs.push_back({"cu_seqlens", DType::i32, {p.sequences() + 1}});
  return specs;
}
std::vector<TensorSpec> outputs(const Problem& p) { return {{"y", p.io, {p.rows(), p.HK, p.K}, 0}}; }
double flops(const Problem& p) { return 3 * static_cast<double>(p.tokens() * p.HK * p.K); }
double bytes(const Problem& p) { return touched_bytes(p, inputs(p)) + touched_bytes(p, outputs(p)); }

}  // namespace

const OpInfo kOpL2norm{"l2norm", "q/k normalisation: x / sqrt(sum x^2 + 1e-6)", inputs, outputs, flops, bytes};

}  // namespace deltagauge
