// Summaries through the staged chunk form, and the algebra on them.
#include "reference/cp.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "core/op.h"
#include "reference/gdn.h"

namespace deltagauge::reference {
namespace {

// The rows of the ranges one after the other.
Tensor gathered(const Tensor& tensor, std::span<const RowRange> ranges) {
  Shape shape = tensor.shape();
  shape[0] = 0;
  for (const RowRange& range : ranges) shape[0] += range.end - range.first;
  Tensor out(tensor.dtype(), shape);
  std::size_t at = 0;
  for (const RowRange& range : ranges) {
    if (range.first == range.end) continue;
    const Tensor part = rows(tensor, range.first, range.end - range.first);
    std::memcpy(out.data() + at, part.data(), part.nbytes());
    at += part.nbytes();
  }
  return out;
}

// v [T, HV, V] with `more` columns of zeros.
Tensor widened(const Tensor& v, std::int64_t more) {
  const std::int64_t V = v.dim(2);
  Tensor out(v.dtype(), {v.dim(0), v.dim(1), V + more});
  for (std::int64_t row = 0; row < v.dim(0) * v.dim(1); ++row)
    for (std::int64_t c = 0; c < V; ++c) out.store(row * (V + more) + c, v.load(row * V + c));
  return out;
}

template <class Real>
void merge(const Real* S, const Real* bias, const Real* transition, std::int64_t V, std::int64_t K, Real* out) {
  std::vector<Real> row(static_cast<std::size_t>(K));
  for (std::int64_t v = 0; v < V; ++v) {
    std::copy_n(bias + v * K, K, row.begin());
    for (std::int64_t j = 0; j < K; ++j)
      for (std::int64_t c = 0; c < K; ++c) {
        Real& sum = row[static_cast<std::size_t>(c)];
        sum = std::fma(S[v * K + j], transition[j * K + c], sum);
      }
    std::copy(row.begin(), row.end(), out + v * K);
  }
}

struct Sizes {
  std::int64_t HV, V, K;
  std::size_t state(std::int64_t n, std::int64_t h) const { return static_cast<std::size_t>((n * HV + h) * V * K); }
  std::size_t map(std::int64_t n, std::int64_t h) const { return static_cast<std::size_t>((n * HV + h) * (V + K) * K); }
};

Sizes sizes_of(const Tensor& states, const Tensor& summaries) {
  const Shape &s = states.shape(), &m = summaries.shape();
  if (s.size() != 4 || m.size() != 4 || m[1] != s[1] || m[2] != s[2] + s[3] || m[3] != s[3] ||
      states.dtype() != summaries.dtype())
    fail("summaries: expected ", name(states.dtype()), " [R, HV, V + K, K] for states [N, HV, V, K] of ", to_string(s),
         ", got ", name(summaries.dtype()), " ", to_string(m));
  return {s[1], s[2], s[3]};
}

// Calls with a value of the tensors' element type.
template <class Call>
void in_type_of(const Tensor& states, Call call) {
  if (states.dtype() == DType::f64)
    call(double{});
  else
    call(float{});
}

}  // namespace

CpPrepared::CpPrepared(const Problem& span, const Tensors& inputs, const Staging& staging)
    : span_(span), inputs_(inputs), staging_(staging) {
  if (span.op != "gdn" || span.layout != Layout::packed)
    fail("context parallelism: expected op gdn in packed rows, got ", span.op,
         span.layout == Layout::packed ? "" : " with layout=dense");
  span_.final_state = Switch::on;
  span_.state = state_dtype();
}

DType CpPrepared::state_dtype() const { return staging_.accumulate == Accumulate::f64 ? DType::f64 : DType::f32; }

Tensor CpPrepared::summarise(std::span<const RowRange> ranges) const {
  Problem p = span_;
  p.V += p.K;
  p.ids.clear();
  p.capacity = 0;
  p.lengths.clear();
  for (const RowRange& range : ranges) p.lengths.push_back(range.end - range.first);
  Tensors inputs;
  for (const TensorSpec& spec : op_info(p.op).inputs(span_)) {
    if (spec.token_dim == 0) inputs[spec.name] = gathered(get(inputs_, spec.name), ranges);
    if (spec.name == "A_log" || spec.name == "dt_bias") inputs[spec.name] = get(inputs_, spec.name);
  }
  inputs["v"] = widened(inputs["v"], p.K);
  Tensor& start = inputs["initial_state"] = Tensor(p.state, {p.sequences(), p.HV, p.V, p.K});
  for (std::int64_t head = 0; head < p.sequences() * p.HV; ++head)
    for (std::int64_t j = 0; j < p.K; ++j) start.store((head * p.V + span_.V + j) * p.K + j, 1);
  return get(gdn_staged(p, inputs, staging_, false, nullptr), "final_state");
}

Tensors CpPrepared::run(const Tensor& entry, bool taps) const {
  const Shape want{span_.sequences(), span_.HV, span_.V, span_.K};
  if (entry.shape() != want || entry.dtype() != state_dtype())
    fail("entry states: expected ", name(state_dtype()), " ", to_string(want), ", got ", name(entry.dtype()), " ",
         to_string(entry.shape()));
  Tensors inputs = inputs_;
  inputs["initial_state"] = entry;
  return gdn_staged(span_, inputs, staging_, taps, nullptr);
}

void merge_state(Tensor& states, std::int64_t to, std::int64_t from, const Tensor& summaries, std::int64_t map) {
  const Sizes at = sizes_of(states, summaries);
  in_type_of(states, [&](auto real) {
    const auto S = states.as<decltype(real)>();
    const auto* maps = summaries.as<decltype(real)>().data();
    for (std::int64_t h = 0; h < at.HV; ++h)
      merge(S.data() + at.state(from, h), maps + at.map(map, h), maps + at.map(map, h) + at.V * at.K, at.V, at.K,
            S.data() + at.state(to, h));
  });
}

void copy_bias(Tensor& states, std::int64_t to, const Tensor& summaries, std::int64_t map) {
  const Sizes at = sizes_of(states, summaries);
  in_type_of(states, [&](auto real) {
    for (std::int64_t h = 0; h < at.HV; ++h)
      std::copy_n(summaries.as<decltype(real)>().data() + at.map(map, h), at.V * at.K,
                  states.as<decltype(real)>().data() + at.state(to, h));
  });
}

void merge_bias(Tensor& summaries, std::int64_t map, const Tensor& states, std::int64_t from) {
  const Sizes at = sizes_of(states, summaries);
  in_type_of(states, [&](auto real) {
    auto* maps = summaries.as<decltype(real)>().data();
    for (std::int64_t h = 0; h < at.HV; ++h)
      merge(states.as<decltype(real)>().data() + at.state(from, h), maps + at.map(map, h),
            maps + at.map(map, h) + at.V * at.K, at.V, at.K, maps + at.map(map, h));
  });
}

}  // namespace deltagauge::reference
