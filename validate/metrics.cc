#include "validate/metrics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include "core/error.h"
#include "reports/locate.h"
#include "validate/thresholds.h"

namespace deltagauge::validate {
namespace {

double ratio(double error, double budget) {
  if (error == 0) return 0;
  return budget > 0 ? error / budget : std::numeric_limits<double>::infinity();
}

std::vector<std::int64_t> coordinates(const Shape& shape, std::int64_t element) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    index[d] = element % shape[d];
    element /= shape[d];
  }
  return index;
}

// The sorted-rank percentile: the smallest value with at least fraction of all at or below it.
double percentile(std::vector<std::int64_t>& values, double fraction) {
  if (values.empty()) return 0;
  const auto rank = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(values.size())));
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank ? rank - 1 : 0);
  std::nth_element(values.begin(), at, values.end());
  return static_cast<double>(*at);
}

constexpr std::int64_t kMostBlocks = 128;  // of an error map, per head

// Gathers the worst row ratio per head and place: the packed token, or the chunk or sequence of a block of rows.
class Mapper {
 public:
  explicit Mapper(const Rows& rows) {
    std::int64_t places = 0;
    for (const Series& s : rows.series) {
      map_.heads = std::max(map_.heads, s.head + 1);
      places = std::max(places, s.block >= 0 ? s.block + 1 : s.token + s.count);
    }
    map_.rows_per_block = std::max<std::int64_t>(1, (places + kMostBlocks - 1) / kMostBlocks);
    map_.blocks = (places + map_.rows_per_block - 1) / map_.rows_per_block;
    map_.row_ratio.assign(static_cast<std::size_t>(map_.heads * map_.blocks), 0);
  }
  void add(const Series& s, std::int64_t i, double row_ratio) {
    const std::int64_t place = (s.block >= 0 ? s.block : s.token + i) / map_.rows_per_block;
    double& worst = map_.row_ratio[static_cast<std::size_t>(s.head * map_.blocks + place)];
    if (reports::worse(row_ratio, worst)) worst = row_ratio;
  }
  reports::ErrorMap take() {
    for (double& x : map_.row_ratio) x = round_to(DType::bf16, x);  // for a picture: three digits are enough in a file
    return std::move(map_);
  }

 private:
  reports::ErrorMap map_;
};

enum class Kind { error, agree, non_finite };

// How an element takes part: with its error, as an agreed NaN or infinity, or as a mismatch of the two sets.
Kind kind_of(DType dtype, double got, double want, double allowed) {
  if (std::isfinite(got) && std::isfinite(want)) return Kind::error;
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want) ? Kind::agree : Kind::non_finite;
  const double reach = want + std::copysign(std::isfinite(want) ? allowed : 0, want);
  return round_to(dtype, want) == got || round_to(dtype, reach) == got ? Kind::agree : Kind::non_finite;
}

}  // namespace

reports::TensorMetrics measure(const Tensor& got_tensor, const Tensor& want_tensor, const Rows& rows, const Budget& budget) {
  if (got_tensor.shape() != want_tensor.shape())
    fail("metrics: expected shape ", to_string(want_tensor.shape()), ", got ", to_string(got_tensor.shape()));
  const DType dtype = got_tensor.dtype();
  const auto got = to_f64(got_tensor), want = to_f64(want_tensor);
  reports::TensorMetrics m;
  m.budget_from = budget.from;
  Mapper mapper(rows);
  std::vector<std::int64_t> ulps;
  std::vector<double> norms, errors;  // of judged rows
  double sum = 0, square = 0, want_square = 0, worst_element = -1;
  std::int64_t count = 0, worst_index = -1;
  for (const Series& s : rows.series)
    for (std::int64_t i = 0; i < s.count; ++i) {
      const std::int64_t row = s.first + i * s.stride;
      const auto r = static_cast<std::size_t>(row);
      double row_square = 0, norm_square = 0, row_worst = -1;
      const std::int64_t non_finite_before = m.non_finite;
      std::int64_t row_index = -1;
      for (std::int64_t j = row * rows.width; j < (row + 1) * rows.width; ++j) {
        const double g = got[static_cast<std::size_t>(j)], w = want[static_cast<std::size_t>(j)];
        const Kind kind = kind_of(dtype, g, w, kRowRatio * budget.row[r]);
        if (kind == Kind::non_finite && m.non_finite++ == 0) {
          worst_index = j;
          worst_element = std::numeric_limits<double>::infinity();
        }
        if (kind != Kind::error) continue;
        const double e = g - w;
        ulps.push_back(ulp_distance(dtype, g, w));
        ++count;
        sum += e;
        row_square += e * e;
        norm_square += w * w;
        m.max_abs = std::max(m.max_abs, std::abs(e));
        if (std::abs(e) > row_worst) {
          row_worst = std::abs(e);
          row_index = j;
        }
      }
      square += row_square;
      want_square += norm_square;
      errors.push_back(std::sqrt(row_square));
      norms.push_back(std::sqrt(norm_square));
      const double row_ratio = ratio(errors.back(), budget.row[r]);
      const double element_ratio = ratio(std::max(row_worst, 0.0) * std::sqrt(budget.spread[r]), budget.row[r]);
      if (row_ratio > m.row_ratio || norms.size() == 1) m.budget = budget.row[r];
      m.row_ratio = std::max(m.row_ratio, row_ratio);
      mapper.add(s, i, m.non_finite > non_finite_before ? std::numeric_limits<double>::quiet_NaN() : row_ratio);
      m.element_ratio = std::max(m.element_ratio, element_ratio);
      if (row_index >= 0 && element_ratio > worst_element) {
        worst_element = element_ratio;
        worst_index = row_index;
      }
    }
  m.rel_l2 = ratio(std::sqrt(square), std::sqrt(want_square));
  m.bias = square > 0 ? sum / std::sqrt(square * static_cast<double>(count)) : 0;
  m.ulp_p50 = percentile(ulps, 0.5);
  m.ulp_p99 = percentile(ulps, 0.99);
  m.ulp_max = percentile(ulps, 1);
  if (!norms.empty()) {
    auto sorted = norms;
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
    const double median = sorted[sorted.size() / 2];
    for (std::size_t i = 0; i < norms.size(); ++i)
      m.worst_row = std::max(m.worst_row, ratio(errors[i], std::max(norms[i], median)));
  }
  if (worst_index >= 0)
    m.worst = reports::Worst{coordinates(got_tensor.shape(), worst_index), got[static_cast<std::size_t>(worst_index)],
                             want[static_cast<std::size_t>(worst_index)]};
  m.map = mapper.take();
  return m;
}

std::string place(const Problem& problem, std::string_view tensor, const Shape& shape, std::int64_t element) {
  return reports::locate(problem, tensor, coordinates(shape, element));
}

std::string bit_mismatch(const Problem& problem, std::string_view tensor, const Tensor& got, const Tensor& want,
                         const Rows& rows) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape() || !got.contiguous() || !want.contiguous())
    fail("bits: expected contiguous ", name(want.dtype()), " ", to_string(want.shape()), ", got ", name(got.dtype()), " ",
         to_string(got.shape()));
  const std::size_t size = size_of(got.dtype());
  std::int64_t first = -1, differ = 0, judged = 0;
  for (const Series& s : rows.series)
    for (std::int64_t i = 0; i < s.count; ++i) {
      const std::int64_t begin = (s.first + i * s.stride) * rows.width;
      judged += rows.width;
      const auto at = static_cast<std::size_t>(begin) * size, bytes = static_cast<std::size_t>(rows.width) * size;
      if (std::memcmp(got.data() + at, want.data() + at, bytes) == 0) continue;
      for (std::int64_t j = begin; j < begin + rows.width; ++j) {
        const std::size_t e = static_cast<std::size_t>(j) * size;
        if (std::memcmp(got.data() + e, want.data() + e, size) == 0) continue;
        ++differ;
        if (first < 0 || j < first) first = j;
      }
    }
  if (differ == 0) return {};
  std::ostringstream text;
  text.precision(9);
  text << differ << " of " << judged << " elements differ, first at " << place(problem, tensor, got.shape(), first)
       << ": got " << got.load(first) << ", want " << want.load(first);
  return text.str();
}

}  // namespace deltagauge::validate
