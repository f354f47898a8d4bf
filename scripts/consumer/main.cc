// A user's program: judges its own token-by-token FP32 recurrence against the oracle on one tiny case.
// Exit status 0 when every output is within the a-priori bound of FP32 arithmetic, 1 when one is not.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "core/inputs.h"
#include "core/problem.h"
#include "oracle/oracle.h"

namespace dg = deltagauge;

namespace {

// o [T, V] of one sequence and one head, as in docs/math.md#gdn, every step in FP32.
std::vector<float> my_kernel(const dg::Problem& p, const dg::Tensors& in) {
  const auto q = dg::to_f64(dg::get(in, "q")), k = dg::to_f64(dg::get(in, "k")), v = dg::to_f64(dg::get(in, "v"));
  const auto g = dg::to_f64(dg::get(in, "g")), beta = dg::to_f64(dg::get(in, "beta"));
  const auto T = static_cast<std::size_t>(p.tokens()), K = static_cast<std::size_t>(p.K), V = static_cast<std::size_t>(p.V);
  std::vector<float> S(V * K), o(T * V);
  for (std::size_t t = 0; t < T; ++t) {
    for (std::size_t row = 0; row < V; ++row) {
      float* s = &S[row * K];
      const auto alpha = static_cast<float>(std::exp(g[t]));
      float seen = 0;
      for (std::size_t c = 0; c < K; ++c) {
        s[c] *= alpha;
        seen += s[c] * static_cast<float>(k[t * K + c]);
      }
      const float u = static_cast<float>(beta[t]) * (static_cast<float>(v[t * V + row]) - seen);
      float read = 0;
      for (std::size_t c = 0; c < K; ++c) {
        s[c] += u * static_cast<float>(k[t * K + c]);
        read += s[c] * static_cast<float>(q[t * K + c]);
      }
      o[t * V + row] = static_cast<float>(p.q_scale()) * read;
    }
  }
  return o;
}

}  // namespace

int main() {
  const dg::Case c = dg::parse_id("gdn/fwd/len=19,HK=1,HV=1,K=16,V=8/f32/gate=strong/keys=iid/precise/seed=7");
  const dg::Tensors inputs = dg::make_inputs(c);
  const dg::oracle::Answer right = dg::oracle::answer(c.problem, inputs);
  const std::vector<double> want = dg::to_f64(dg::get(right.outputs, "o"));
  const std::vector<float> got = my_kernel(c.problem, inputs);

  // With |k| = 1, 0 <= beta <= 1 and decay <= 1 a row of S is never longer than the sum of |v| so far, and an output is
  // reached through at most T (2 K + 8) roundings: |error| <= gamma_n scale |q| sum |v|.
  const double u = dg::unit_roundoff(dg::DType::f32);
  const double n = static_cast<double>(c.problem.tokens()) * (2.0 * static_cast<double>(c.problem.K) + 8.0);
  double q_norm = 0, v_sum = 0;
  for (double x : dg::to_f64(dg::get(inputs, "q"))) q_norm += x * x;
  for (double x : dg::to_f64(dg::get(inputs, "v"))) v_sum += std::abs(x);
  const double bound = n * u / (1 - n * u) * c.problem.q_scale() * std::sqrt(q_norm) * v_sum;

  std::size_t wrong = 0;
  double worst = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double error = std::abs(got[i] - want[i]);
    if (!(error <= bound)) ++wrong;  // also when it is not a number
    if (error > worst) worst = error;
  }
  std::printf("%s\n  %zu of %zu outputs past the bound; largest error %.3g, bound %.3g; the oracle ran in %s\n",
              dg::to_id(c).c_str(), wrong, want.size(), worst, bound, std::string(dg::oracle::name(right.used)).c_str());
  return wrong == 0 ? 0 : 1;
}
