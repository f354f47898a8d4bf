// The staged chunk form of gdn (gdn.h has its equations). One chunk of one head: k, q [n, K], v [n, V], S [V, K], n <= C
// rows.
#include <algorithm>
#include <optional>
#include <random>
#include <span>

#include "core/error.h"
#include "reference/gate_split.h"
#include "reference/gdn.h"
#include "reference/gdn_data.h"
#include "reference/mma.h"
#include "reference/rounding.h"
#include "reference/solver.h"

namespace deltagauge::reference {
namespace {

// An operand as stored: value, or hi in value and the rest in lo when the tensor core takes the two apart. up: powers of
// two, one a row (of the transposed: a column), that undo the scaling it was stored under; empty when there is none.
template <class Real>
struct Stored {
  Matrix<Real> value, lo;
  DType format;
  Vector<Real> up{};
  Stored transposed() const { return {value.transpose(), lo.transpose(), format, up}; }
  Matrix<Real> sum() const { return lo.size() ? Matrix<Real>(value + lo) : value; }
};

// x f, and 0 where f is 0 whatever x is: a closed gate forgets infinities too.
template <class Real>
Matrix<Real> decayed(const Vector<Real>& f, const Matrix<Real>& x) {
  return (f.array() == 0).replicate(1, x.cols()).select(Matrix<Real>::Zero(x.rows(), x.cols()), f.asDiagonal() * x);
}

// exp of sums of g over the tokens between two rows of a chunk.
template <class Real>
struct Decays {
  Matrix<Real> between;         // [n, n] j <= i: exp(b_i - b_j); above the diagonal 0
  Vector<Real> to_row, to_end;  // [n] exp(b_i), exp(b_C - b_j)
  Real whole;                   // exp(b_C)
};

struct Place {
  std::int64_t n, h, first;  // sequence, head, first row of the chunk
  std::int64_t index;        // of the chunk in its sequence
  std::int64_t block;        // of the chunk among all of them: the first dimension of the taps
  Index rows, own;           // rows worked on, and rows of this sequence among them (the same but for a slip)
  bool target;               // slips that name one place apply here
};

template <class Real>
class ChunkForm {
 public:
  ChunkForm(const Problem& problem, const Tensors& inputs, const Staging& staging, Slip slip)
      : p_(problem), data_(problem, inputs, staging.folded_norms), staging_(staging), slip_(slip), C_(staging.chunk) {}

  Tensors run(bool taps, Ranges* ranges) {
    outputs_ = unwritten_outputs(p_);
    taps_ = taps;
    std::vector<std::int64_t> blocks{0};
    for (std::int64_t length : p_.lengths) blocks.push_back(blocks.back() + (length + C_ - 1) / C_);
    if (taps) allocate_taps(blocks.back());
    const auto longest = std::max_element(p_.lengths.begin(), p_.lengths.end()) - p_.lengths.begin();
    for_each_head(p_, [&](std::int64_t n, std::int64_t h) {
      Ranges met;
      head(n, h, blocks[static_cast<std::size_t>(n)], n == longest && h == p_.HV - 1, ranges ? &met : nullptr);
      if (!ranges) return;
#pragma omp critical(deltagauge_ranges)
      merge(*ranges, met);
    });
    return std::move(outputs_);
  }

 private:
  void allocate_taps(std::int64_t NC) {
    const DType real = std::is_same_v<Real, double> ? DType::f64 : DType::f32;
    for (const char* name : {"Akk", "Ainv", "P"}) outputs_[name] = Tensor(real, {NC, p_.HV, C_, C_});
    outputs_["S"] = Tensor(real, {NC, p_.HV, p_.V, p_.K});
    outputs_["g_cum"] = unwritten(DType::f64, {p_.rows(), p_.HV});
    for (const char* name : {"resid", "v_new"}) outputs_[name] = unwritten(real, {p_.rows(), p_.HV, p_.V});
  }

  void head(std::int64_t n, std::int64_t h, std::int64_t block, bool target, Ranges* ranges) {
    Matrix<Real> S = data_.initial_state(n, h);
    const std::int64_t begin = data_.begin(n), end = begin + data_.length(n);
    double before = 0;  // sum of g over earlier chunks
    for (std::int64_t first = begin, index = 0; first < end; first += C_, ++index) {
      const Index own = std::min(C_, end - first);
      const Index rows = slip_ == Slip::tail_reads_next ? std::min(C_, p_.tokens() - first) : own;
      chunk({n, h, first, index, block + index, rows, own, target}, S, before, ranges);
      for (Index i = 0; i < own; ++i) before += data_.g_at(first + i, h);
    }
    write_final_state(outputs_, p_, n, h, S);
    if (ranges)
      record_values(ranges, "final_state", p_.state, S, S.unaryExpr([&](Real x) { return round_value(p_.state, x); }));
  }

  void chunk(const Place& at, Matrix<Real>& S, double before, Ranges* ranges) {
    const Index n = at.rows;
    if (slip_ == Slip::state_dropped && at.target && at.index == 1) S.setZero();
    const Matrix<Real> q = data_.q_rows(at.h, at.first, n), k = data_.k_rows(at.h, at.first, n);
    const Matrix<Real> v = data_.v_rows(at.h, at.first, n);
    const Vector<Real> q_norm = data_.q_norms(at.h, at.first, n), k_norm = data_.k_norms(at.h, at.first, n);
    const Decays<Real> decays = decays_of(at, before, ranges);
    const Stored<Real> q_io{q, {}, p_.io}, k_io{k, {}, p_.io}, k_columns = k_io.transposed();

    Matrix<Real> A = product(k_io, k_columns), P = product(q_io, k_columns);
    const Index late = slip_ == Slip::error_before_decay ? 1 : 0;  // rows the decay of the error lags behind
    Vector<Real> beta(n), error_decay(n);
    for (Index i = 0; i < n; ++i) {
      beta(i) = data_.beta_at(at.first + i, at.h);
      error_decay(i) = i >= late ? decays.to_row(i - late) : Real(1);
      for (Index j = 0; j < n; ++j) {
        A(i, j) = j < i ? k_norm(i) * k_norm(i) * beta(i) * (decays.between(i - late, j) * A(i, j)) : Real(0);
        if (j <= i)
          P(i, j) *= q_norm(i) * decays.between(i, j);
        else if (slip_ != Slip::P_sees_next || j != i + 1)
          P(i, j) = 0;
        if (slip_ == Slip::P_without_diagonal && j == i) P(i, j) = 0;
      }
    }
    if (staging_.draw != 0) redraw(at, A, P);
    if (ranges) record_values(ranges, "Akk", DType::f32, A, A);
    const Real scale = static_cast<Real>(p_.q_scale()), scale_before = staging_.scaled_P ? scale : 1;
    const Stored<Real> P_stored = store("P", staging_.P, scale_before * P, ranges);
    const Stored<Real> S_columns = store_rows("S", staging_.S, S, largest_of_rows(S), ranges).transposed();

    const Matrix<Real> remembered = k_norm.asDiagonal() * product(k_io, S_columns);  // S k_i
    const Matrix<Real> resid = k_norm.cwiseProduct(beta).asDiagonal() * (v - decayed(error_decay, remembered));
    const Stored<Real> Ainv = store("Ainv", staging_.Ainv, inverse(A), ranges);
    const Stored<Real> resid_stored = store("resid", staging_.resid, resid, ranges);
    const Matrix<Real> v_new = product(Ainv, resid_stored);
    const Stored<Real> v_new_stored = store("v_new", staging_.v_new, v_new, ranges);
    if (taps_)
      write_taps(at, k_norm, A, Ainv.sum(), P_stored.sum() / scale_before, resid_stored.sum(), v_new_stored.sum(), S);

    const Matrix<Real> inter = q_norm.asDiagonal() * product(q_io, S_columns);  // S q_i
    Matrix<Real> scaled = decays.to_end.asDiagonal() * v_new;
    if (slip_ == Slip::v_new_not_decayed) scaled = v_new;
    if (slip_ == Slip::last_token_twice && at.first + at.own == data_.begin(at.n) + data_.length(at.n))
      scaled.row(at.own - 1) *= 2;
    S = decayed<Real>(Vector<Real>::Constant(S.rows(), decays.whole), S);
    const Matrix<Real> u = scaled.transpose();  // [V, n]
    const Vector<Real> largest = largest_of_rows(S).cwiseMax(largest_of_rows(u));
    add_product(store_rows("v_new_decayed", staging_.v_new_decayed, u, largest, ranges), k_io, S);

    Vector<Real> read_decay = scale_before * decays.to_row;
    if (slip_ == Slip::inter_not_decayed) read_decay.setConstant(scale_before);
    Matrix<Real> o = decayed(read_decay, inter);
    if (slip_ == Slip::read_after_update)
      o = decayed<Real>(
          read_decay,
          q_norm.asDiagonal() * product(q_io, store_rows("S", staging_.S, S, largest_of_rows(S), nullptr).transposed()));
    add_product(P_stored, v_new_stored, o);
    if (!staging_.scaled_P) o *= scale;
    write(outputs_.find("o")->second, at, o);
    if (ranges) record_values(ranges, "o", p_.io, o, o.unaryExpr([&](Real x) { return round_value(p_.io, x); }));
  }

  // Staging::draw.
  void redraw(const Place& at, Matrix<Real>& A, Matrix<Real>& P) const {
    std::mt19937_64 random(staging_.draw + 1000003 * static_cast<std::uint64_t>(at.block * p_.HV + at.h));
    const auto factor = [&] { return Real(1 + 0x1p-22 * (0x1p-63 * static_cast<double>(random()) - 1)); };
    for (Index i = 0; i < A.rows(); ++i)
      for (Index j = 0; j <= i; ++j) {
        A(i, j) *= factor();
        P(i, j) *= factor();
      }
  }

  Decays<Real> decays_of(const Place& at, double before, Ranges* ranges) const {
    const Index n = at.rows;
    Decays<Real> d{Matrix<Real>::Zero(n, n), Vector<Real>(n), Vector<Real>(n), 1};
    std::vector<double> b(static_cast<std::size_t>(n));
    double sum = slip_ == Slip::cumsum_not_reset ? before : 0;
    for (Index i = 0; i < n; ++i) {
      sum += data_.g_at(at.first + i, at.h);
      if (slip_ == Slip::cumsum_bf16) sum = round_to(DType::bf16, sum);
      b[static_cast<std::size_t>(i)] = slip_ == Slip::decay_clamped ? std::max(sum, std::log(1e-10)) : sum;
    }
    const bool of_cumsum = slip_ == Slip::cumsum_bf16 || slip_ == Slip::decay_clamped;  // b_i - b_j from the b themselves
    for (Index i = 0; i < n; ++i) {
      d.to_row(i) = exponential(b[static_cast<std::size_t>(i)]);
      double over = 0;  // g summed over the tokens after j, up to i
      for (Index j = i; j >= 0; over += data_.g_at(at.first + j, at.h), --j)
        d.between(i, j) = exponential(of_cumsum ? b[static_cast<std::size_t>(i)] - b[static_cast<std::size_t>(j)] : over);
    }
    d.to_end = d.between.row(n - 1).transpose();
    d.whole = d.to_row(n - 1);
    if (slip_ == Slip::end_gate_off_by_one) {
      d.whole = n > 1 ? d.to_row(n - 2) : Real(1);
      if (n > 1) d.to_end = d.between.row(n - 2).transpose();
      d.to_end(n - 1) = 1;
    }
    if (slip_ == Slip::end_gate_of_padding && n < C_) {
      d.whole = 1;
      for (Index j = 0; j < n; ++j) d.to_end(j) = exponential(-b[static_cast<std::size_t>(j)]);
    }
    if (taps_)
      for (Index i = 0; i < at.own; ++i)
        outputs_.find("g_cum")->second.store((at.first + i) * p_.HV + at.h, b[static_cast<std::size_t>(i)]);
    if (staging_.gate.anchor != Anchor::direct) d.between = split_decays<Real>(staging_.gate, b, ranges);
    if (staging_.decay != Store::f32) {
      d.between = store("decay", staging_.decay, d.between, nullptr).sum();
      d.to_row = store("decay", staging_.decay, d.to_row, nullptr).sum();
      d.to_end = store("decay", staging_.decay, d.to_end, nullptr).sum();
      d.whole = store("decay", staging_.decay, Matrix<Real>::Constant(1, 1, d.whole), nullptr).sum()(0, 0);
    }
    if (ranges) record_decays(at, d, *ranges);
    return d;
  }
  // What the decays of a chunk would be in f64 beside what they are: to_row, and between (or to_end, of a split gate).
  void record_decays(const Place& at, const Decays<Real>& d, Ranges& ranges) const {
    const Index n = at.rows;
    const bool split = staging_.gate.anchor != Anchor::direct;
    std::vector<double> before, after;
    double sum = 0;
    for (Index i = 0; i < n; ++i) {
      before.push_back(decay_before_store(sum += data_.g_at(at.first + i, at.h)));
      after.push_back(static_cast<double>(d.to_row(i)));
      if (split && i < n - 1) continue;
      double over = 0;
      for (Index j = i; j >= 0; over += data_.g_at(at.first + j, at.h), --j) {
        before.push_back(decay_before_store(over));
        after.push_back(static_cast<double>(split ? d.to_end(j) : d.between(i, j)));
      }
    }
    record(ranges, "decay", store_format(staging_.decay, p_.io), std::span<const double>(before),
           std::span<const double>(after));
  }
  Real exponential(double sum) const { return decay(p_.math, static_cast<Real>(sum), staging_.fast_exp); }

  Matrix<Real> inverse(const Matrix<Real>& A) const {
    const Index n = A.rows();
    const Matrix<double> wide = A.template cast<double>();
    const std::vector<double> X = invert(staging_.solver, n, {wide.data(), static_cast<std::size_t>(n * n)});
    Matrix<Real> result = Eigen::Map<const Matrix<double>>(X.data(), n, n).template cast<Real>();
    if (slip_ == Slip::Ainv_row_shifted) {
      const Matrix<Real> right = result;
      for (Index i = 1; i < n; ++i) result.row(i).head(i) = right.row(i - 1).head(i);
    }
    return result;
  }

  // --- stores and products -------------------------------------------------------------------------------------------
  Stored<Real> store(const char* name, Store kind, const Matrix<Real>& x, Ranges* ranges) const {
    Stored<Real> stored{x, {}, store_format(kind, p_.io)};
    std::vector<Real> lo;
    round_store(kind, p_.io, std::span<Real>(stored.value.data(), static_cast<std::size_t>(x.size())), lo);
    if (ranges) record_values(ranges, name, stored.format, x, stored.value);
    if (lo.empty()) return stored;
    stored.lo = Eigen::Map<const Matrix<Real>>(lo.data(), x.rows(), x.cols());
    if (staging_.accumulate != Accumulate::tensor_core) {  // hi + lo is exact in the working type
      stored.value += stored.lo;
      stored.lo.resize(0, 0);
    }
    return stored;
  }
  static Vector<Real> largest_of_rows(const Matrix<Real>& x) { return x.cwiseAbs().rowwise().maxCoeff(); }
  // As store(), for what stands in rows of the state: scaled kinds bring largest[row] to [2^13, 2^14) first.
  Stored<Real> store_rows(const char* name, Store kind, const Matrix<Real>& x, const Vector<Real>& largest,
                          Ranges* ranges) const {
    if (!is_scaled(kind, p_.io)) return store(name, kind, x, ranges);
    const Vector<Real> up = largest.unaryExpr([](Real l) {
      return l > 0 && std::isfinite(l) ? std::ldexp(Real(1), std::clamp(std::ilogb(l) - 13, -126, 126)) : Real(1);
    });
    Stored<Real> stored = store(name, kind, up.cwiseInverse().asDiagonal() * x, ranges);
    stored.up = up;
    return stored;
  }
  // c += a b. Where an operand is stored scaled, c is brought to the same scale and back, as the kernel does.
  void add_product(const Stored<Real>& a, const Stored<Real>& b, Matrix<Real>& c) const {
    if (a.up.size()) c = a.up.cwiseInverse().asDiagonal() * c;
    if (b.up.size()) c = c * b.up.cwiseInverse().asDiagonal();
    add_stored(a, b, c);
    if (a.up.size()) c = a.up.asDiagonal() * c;
    if (b.up.size()) c = c * b.up.asDiagonal();
  }
  void add_stored(const Stored<Real>& a, const Stored<Real>& b, Matrix<Real>& c) const {
    if constexpr (std::is_same_v<Real, float>) {
      if (staging_.accumulate == Accumulate::tensor_core) {
        const MmaModel& model = model_for(a.format, b.format);
        const auto add = [&](const Matrix<float>& x, const Matrix<float>& y) {
          if (x.size() && y.size()) mma_matmul(model, x.rows(), y.cols(), x.cols(), x.data(), y.data(), c.data());
        };
        add(a.value, b.value);
        add(a.lo, b.value);
        add(a.value, b.lo);  // lo lo is below what a split keeps
        return;
      }
    }
    c.noalias() += a.value * b.value;
  }
  Matrix<Real> product(const Stored<Real>& a, const Stored<Real>& b) const {
    Matrix<Real> c = Matrix<Real>::Zero(a.value.rows(), b.value.cols());
    add_product(a, b, c);
    return c;
  }
  static const MmaModel& model_for(DType a, DType b) {
    if (a == DType::bf16 && b == DType::bf16) return kHopperBf16;
    if (a == DType::f16 && b == DType::f16) return kHopperF16;
    return kHopperTf32;  // holds both 16-bit formats
  }

  // --- outputs -------------------------------------------------------------------------------------------------------
  static void record_values(Ranges* ranges, std::string_view name, DType format, const Matrix<Real>& before,
                            const Matrix<Real>& after) {
    const auto size = static_cast<std::size_t>(before.size());
    record(*ranges, name, format, std::span<const Real>(before.data(), size), std::span<const Real>(after.data(), size));
  }
  void write(Tensor& t, const Place& at, const Matrix<Real>& rows) const {
    write_rows<Real>(t, (at.first * p_.HV + at.h) * rows.cols(), p_.HV * rows.cols(), rows.topRows(at.own));
  }
  void write_square(const char* name, const Place& at, const Matrix<Real>& x, Real past_end) {
    Matrix<Real> whole = Matrix<Real>::Zero(C_, C_);
    whole.diagonal().setConstant(past_end);
    whole.topLeftCorner(at.own, at.own) = x.topLeftCorner(at.own, at.own);
    write_rows(outputs_.find(name)->second, (at.block * p_.HV + at.h) * C_ * C_, C_, whole);
  }
  // k_norm: 1 / |k_i| where they are folded in, else 1.
  void write_taps(const Place& at, const Vector<Real>& k_norm, const Matrix<Real>& A, const Matrix<Real>& Ainv,
                  const Matrix<Real>& P, const Matrix<Real>& resid, const Matrix<Real>& v_new, const Matrix<Real>& S) {
    const auto columns = k_norm.asDiagonal();
    const Vector<Real> up = k_norm.cwiseInverse();
    const auto rows = up.asDiagonal();
    write_square("Akk", at, rows * A * columns, 0);
    write_square("Ainv", at, rows * Ainv * columns, 1);
    write_square("P", at, P * columns, 0);
    write(outputs_.find("resid")->second, at, rows * resid);
    write(outputs_.find("v_new")->second, at, rows * v_new);
    write_rows(outputs_.find("S")->second, (at.block * p_.HV + at.h) * p_.V * p_.K, p_.K, S);
  }

  const Problem& p_;
  GdnData<Real> data_;
  const Staging& staging_;
  Slip slip_;
  Index C_;
  bool taps_ = false;
  mutable Tensors outputs_;  // disjoint elements are written by the heads
};

}  // namespace

Tensors gdn_staged(const Problem& problem, const Tensors& inputs, const Staging& staging, bool taps, Ranges* ranges,
                   Slip slip) {
  if (staging.chunk < 1) fail("staging ", staging.name, ": expected a chunk of at least 1, got ", staging.chunk);
  if (staging.accumulate == Accumulate::f64) return ChunkForm<double>(problem, inputs, staging, slip).run(taps, ranges);
  if (staging.accumulate == Accumulate::tensor_core)
    for (Store store : {staging.Ainv, staging.P, staging.S, staging.resid, staging.v_new, staging.v_new_decayed, Store::io})
      if (store != Store::tf32 && store != Store::tf32_cut && store != Store::split_tf32 &&
          store_format(store, problem.io) != DType::bf16 && store_format(store, problem.io) != DType::f16)
        fail("staging ", staging.name,
             ": tensor_core sums need operands stored as io (bf16, f16), split, tf32, tf32_cut, f16 or bf16, got ",
             name(store), " with io ", name(problem.io));
  return ChunkForm<float>(problem, inputs, staging, slip).run(taps, ranges);
}

}  // namespace deltagauge::reference
