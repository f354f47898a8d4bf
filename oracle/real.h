// The number types of the oracle: double and DoubleDouble (an unevaluated sum hi + lo, |lo| <= ulp(hi) / 2, about 106 bits),
// one value or a Vector of them at a time. Boost's wider types are in real_wide.h. u = 2^-53 below.
//   two_sum, two_prod are exact;  a + b: 3 u^2 |a + b|, also under cancellation;  a b: 7 u^2 |a b|;  a / b: 16 u^2;
//   exp, log1p, sqrt: 2^-96 relative (real_test.cc holds them against 237 bits).
// Infinities survive / sqrt exp, but not + - * of DoubleDouble (inf - inf inside): callers treat them beforehand.
#pragma once
#include <cmath>
#include <limits>

namespace deltagauge::oracle {

// Vectors never cross a call: every function that takes or returns one is inlined, so their calling convention is moot.
// Not popped: the compiler says it again where templates of this and other internal headers are instantiated.
#pragma GCC diagnostic ignored "-Wpsabi"

using Vector = double __attribute__((vector_size(32)));  // 4 lanes: one AVX register, two SSE2 or NEON ones

[[gnu::always_inline]] inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
[[gnu::always_inline]] inline Vector fma(const Vector& a, const Vector& b, const Vector& c) {
  return Vector{fma(a[0], b[0], c[0]), fma(a[1], b[1], c[1]), fma(a[2], b[2], c[2]), fma(a[3], b[3], c[3])};
}

template <class T>  // double or Vector
struct Twofold {
  T hi{}, lo{};
  Twofold() = default;
  explicit Twofold(const T& x) : hi(x) {}
  Twofold(const T& h, const T& l) : hi(h), lo(l) {}
  explicit operator double() const { return hi; }  // the nearest double
};
using DoubleDouble = Twofold<double>;

template <class T>
[[gnu::always_inline]] inline Twofold<T> two_sum(const T& a, const T& b) {
  const T s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}
template <class T>  // |a| >= |b| or a = 0
[[gnu::always_inline]] inline Twofold<T> fast_two_sum(const T& a, const T& b) {
  const T s = a + b;
  return {s, b - (s - a)};
}
template <class T>
[[gnu::always_inline]] inline Twofold<T> two_prod(const T& a, const T& b) {
  const T p = a * b;
  return {p, fma(a, b, -p)};
}
template <class T>
[[gnu::always_inline]] inline Twofold<T> operator-(const Twofold<T>& a) {
  return {-a.hi, -a.lo};
}
template <class T>  // Not the shorter sum that adds lo parts once: its error is not bounded by |a + b| when a ~ -b.
[[gnu::always_inline]] inline Twofold<T> operator+(const Twofold<T>& a, const Twofold<T>& b) {
  Twofold<T> s = two_sum<T>(a.hi, b.hi);
  const Twofold<T> t = two_sum<T>(a.lo, b.lo);
  s = fast_two_sum<T>(s.hi, s.lo + t.hi);
  return fast_two_sum<T>(s.hi, s.lo + t.lo);
}
template <class T>
[[gnu::always_inline]] inline Twofold<T> operator-(const Twofold<T>& a, const Twofold<T>& b) {
  return a + -b;
}
template <class T>
[[gnu::always_inline]] inline Twofold<T> operator*(const Twofold<T>& a, const Twofold<T>& b) {
  const Twofold<T> p = two_prod<T>(a.hi, b.hi);
  return fast_two_sum<T>(p.hi, fma(a.lo, b.hi, fma(a.hi, b.lo, p.lo)));
}
inline DoubleDouble operator/(DoubleDouble a, DoubleDouble b) {  // also of and by infinities
  const double q = a.hi / b.hi;
  if (!std::isfinite(q) || std::isinf(b.hi)) return DoubleDouble(q);
  DoubleDouble r = a - b * DoubleDouble(q);
  const double q2 = r.hi / b.hi;
  r = r - b * DoubleDouble(q2);
  return fast_two_sum(q, q2) + DoubleDouble(r.hi / b.hi);
}

inline DoubleDouble sqrt(DoubleDouble a) {  // a >= 0, also infinite: one Newton step from the nearest double
  if (a.hi == 0 || std::isinf(a.hi)) return DoubleDouble(a.hi);
  const double x = std::sqrt(a.hi);
  return DoubleDouble(x) + DoubleDouble((a - two_prod(x, x)).hi / (2 * x));
}
// exp(x) - 1 for |x| <= log 2: twelve terms at x / 128, then expm1(2r) = 2 expm1(r) + expm1(r)^2 seven times.
inline DoubleDouble expm1_reduced(DoubleDouble x) {
  constexpr int kHalvings = 7, kTerms = 12;  // (log 2 / 128)^12 / 13! < 2^-120
  const DoubleDouble r{x.hi * 0x1p-7, x.lo * 0x1p-7}, one(1.0);
  DoubleDouble series = one;
  for (int n = kTerms; n >= 2; --n) series = one + r * series / DoubleDouble(n);
  DoubleDouble e = r * series;
  for (int i = 0; i < kHalvings; ++i) e = DoubleDouble(2 * e.hi, 2 * e.lo) + e * e;
  return e;
}
inline DoubleDouble exp(DoubleDouble x) {  // also of infinities
  if (std::isnan(x.hi)) return x;
  if (x.hi < -746) return DoubleDouble(0.0);  // below half of the smallest subnormal
  if (x.hi > 710) return DoubleDouble(std::numeric_limits<double>::infinity());
  const DoubleDouble log2{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
  const double k = std::nearbyint(x.hi / log2.hi);
  const DoubleDouble e = DoubleDouble(1.0) + expm1_reduced(x - log2 * DoubleDouble(k));
  return {std::ldexp(e.hi, static_cast<int>(k)), std::ldexp(e.lo, static_cast<int>(k))};
}
inline DoubleDouble log1p(DoubleDouble x) {  // 0 <= x <= 1: one Newton step on expm1(z) = x from the nearest double
  const DoubleDouble z(std::log1p(x.hi)), e = expm1_reduced(z);
  return z - (e - x) / (DoubleDouble(1.0) + e);
}

// Pack<Real>: how many values of Real are worked on at once, and how one of them is reached.
template <class Real>
struct Pack {
  using type = Real;
  static constexpr int kLanes = 1, kPerBlock = 1;  // kPerBlock: independent packs side by side, to cover latency
  static type broadcast(const Real& x) { return x; }
  static Real get(const type& pack, int) { return pack; }
  static void set(type& pack, int, const Real& x) { pack = x; }
};
template <>
struct Pack<double> {
  using type = Vector;
  static constexpr int kLanes = 4, kPerBlock = 4;
  [[gnu::always_inline]] static type broadcast(double x) { return Vector{x, x, x, x}; }
  [[gnu::always_inline]] static double get(const type& pack, int lane) { return pack[lane]; }
  [[gnu::always_inline]] static void set(type& pack, int lane, double x) { pack[lane] = x; }
};
template <>
struct Pack<DoubleDouble> {
  using type = Twofold<Vector>;
  static constexpr int kLanes = 4, kPerBlock = 2;
  [[gnu::always_inline]] static type broadcast(const DoubleDouble& x) {
    return {Pack<double>::broadcast(x.hi), Pack<double>::broadcast(x.lo)};
  }
  [[gnu::always_inline]] static DoubleDouble get(const type& pack, int lane) { return {pack.hi[lane], pack.lo[lane]}; }
  [[gnu::always_inline]] static void set(type& pack, int lane, const DoubleDouble& x) {
    pack.hi[lane] = x.hi, pack.lo[lane] = x.lo;
  }
};

// A sum of products in the order given. For DoubleDouble the high parts are summed exactly and what falls off is summed
// in double: error at most n (n + 7) u^2 sum |a b| over n terms, at less than half the cost of n steps of + and *.
template <class T>
class Dot {
 public:
  [[gnu::always_inline]] void add(const T& a, const T& b) { sum_ = sum_ + a * b; }
  [[gnu::always_inline]] T sum() const { return sum_; }

 private:
  T sum_{};
};
template <class T>
class Dot<Twofold<T>> {
 public:
  [[gnu::always_inline]] void add(const Twofold<T>& a, const Twofold<T>& b) {
    const Twofold<T> p = two_prod<T>(a.hi, b.hi), s = two_sum<T>(hi_, p.hi);
    hi_ = s.hi;
    lo_ = lo_ + (s.lo + fma(a.lo, b.hi, fma(a.hi, b.lo, p.lo)));
  }
  [[gnu::always_inline]] Twofold<T> sum() const { return two_sum<T>(hi_, lo_); }

 private:
  T hi_{}, lo_{};
};

// Calls work() compiled for AVX2 and FMA where the CPU has them, for the build's own target elsewhere or when Real has no
// vector form. The values are the same: nothing here contracts or reorders. Without it a generic x86-64 build would call
// libm for every fma.
#ifdef __x86_64__
template <class Work>
[[gnu::target("avx2,fma"), gnu::flatten, gnu::noinline]] void with_fma(const Work& work) {
  work();
}
#endif
template <class Real, class Work>
void vectorised(const Work& work) {
#ifdef __x86_64__
  if constexpr (Pack<Real>::kLanes > 1)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return with_fma(work);
#endif
  work();
}

}  // namespace deltagauge::oracle
