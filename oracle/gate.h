// Gate transform: y = raw_gate + dt_bias, a = exp(A_log), or exactly 1 when A_log is absent.
//   softplus: g = -a (max(y, 0) + log1p(exp(-|y|)))        bounded: g = lower_bound / (1 + exp(-a y))
// lower_bound is taken as the f32 that a kernel gets. An infinite y gives the limit.
#pragma once
#include <cmath>

#include "oracle/call.h"
#include "oracle/real.h"

namespace deltagauge::oracle {

template <class Real>
Real softplus(const Real& y) {
  using std::exp, std::log1p;
  const bool positive = static_cast<double>(y) > 0;
  const Real tail = log1p(Real(exp(positive ? Real(-y) : y)));
  return positive ? Real(y + tail) : tail;
}
template <class Real>
Real sigmoid(const Real& z) {
  using std::exp;
  const Real one(1.0);
  if (static_cast<double>(z) > 0) return one / (one + exp(Real(-z)));
  const Real e = exp(z);
  return e / (one + e);
}

// -a softplus(x + dt).
template <class Real>
Real softplus_gate(double x, double dt, const Real& a) {
  if (const double y = x + dt; std::isinf(y)) return Real(y > 0 ? -y : -0.0);
  return Real(-(a * softplus(Real(Real(x) + Real(dt)))));
}

// As problem.transform says.
template <class Real>
Real transform_gate(const Problem& p, double x, double dt, const Real& a) {
  if (p.transform != "bounded") return softplus_gate(x, dt, a);
  const Real bound(static_cast<double>(static_cast<float>(p.lower_bound)));
  const double y = x + dt;
  return std::isinf(y) ? Real(y > 0 ? 1.0 : 0.0) * bound : Real(bound * sigmoid(Real(a * (Real(x) + Real(dt)))));
}
template <class Real>
Real gate_rate(const Tensor* A_log, std::int64_t h) {
  using std::exp;
  return A_log ? Real(exp(Real(A_log->at({h})))) : Real(1.0);
}

// The log decays of value head h of gdn, [T, HV]: g as it stands, or transformed from raw_gate.
template <class Real>
class LogDecay {
 public:
  LogDecay(const Call& call, std::int64_t h)
      : call_(call), h_(h), raw_(call.problem.raw_gate == Switch::on), gate_(get(call.inputs, raw_ ? "raw_gate" : "g")) {
    if (!raw_) return;
    dt_ = get(call.inputs, "dt_bias").at({h});
    a_ = gate_rate<Real>(find(call.inputs, "A_log"), h);
  }
  Real operator()(std::int64_t t) const {
    const double x = gate_.at({t, h_});
    return raw_ ? transform_gate(call_.problem, x, dt_, a_) : Real(x);
  }

 private:
  const Call& call_;
  std::int64_t h_;
  bool raw_;
  const Tensor& gate_;
  double dt_ = 0;
  Real a_{};
};

// raw_gate [T, HV] or, per channel, [T, HV, K]; dt_bias [HV] or [HV, K]; A_log [HV] -> answer.outputs g, as raw_gate.
template <class Real>
void gate(const Call& call, Answer& answer) {
  const Problem& p = call.problem;
  const Tensor &raw = get(call.inputs, "raw_gate"), &bias = get(call.inputs, "dt_bias"), *A_log = find(call.inputs, "A_log");
  const auto g = answer.outputs.find("g")->second.as<double>();
  const bool per_channel = p.per == "channel";
  const std::int64_t channels = per_channel ? p.K : 1;
#pragma omp parallel for if (p.tokens() * p.HV * channels > kWorthThreads / 64)  // an exp and a log1p each
  for (std::int64_t i = 0; i < p.tokens() * p.HV; ++i) {
    const std::int64_t t = i / p.HV, h = i % p.HV;
    vectorised<Real>([&] {
      const Real a = gate_rate<Real>(A_log, h);
      for (std::int64_t c = 0; c < channels; ++c) {
        const double x = per_channel ? raw.at({t, h, c}) : raw.at({t, h}), dt = per_channel ? bias.at({h, c}) : bias.at({h});
        g[static_cast<std::size_t>(i * channels + c)] = static_cast<double>(transform_gate(p, x, dt, a));
      }
    });
  }
}

extern template void gate<double>(const Call&, Answer&);  // gate.cc
extern template void gate<DoubleDouble>(const Call&, Answer&);

}  // namespace deltagauge::oracle
