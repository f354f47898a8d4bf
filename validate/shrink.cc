#include "validate/shrink.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/inputs.h"
#include "core/op.h"
#include "validate/cut.h"

namespace deltagauge::validate {
namespace {

using reports::Outcome, reports::Result;

constexpr std::int64_t kFewElements = 32;  // of a tensor whose every element may stand in an id

// Axes in a plain state, the plainest first where an axis stands twice.
constexpr std::pair<std::string_view, const char*> kPlain[] = {{"cap", "0"},
                                                               {"h0", "none"},
                                                               {"h0", "zero"},
                                                               {"l2norm", "off"},
                                                               {"a_log", "on"},
                                                               {"transform", "softplus"},
                                                               {"lb", "-5"},
                                                               {"raw_gate", "off"},
                                                               {"gate", "none"},
                                                               {"gate", "constant=-1"},
                                                               {"gate", "constant=-0.5"},
                                                               {"keys", "iid"},
                                                               {"beta", "const=1"},
                                                               {"beta", "const=0.5"},
                                                               {"kscale", "1"},
                                                               {"v", "normal=1"},
                                                               {"gdtype", "f32"},
                                                               {"bdtype", "f32"},
                                                               {"state", "f32"},
                                                               {"math", "precise"}};

bool shares_one(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& x) { return std::find(b.begin(), b.end(), x) != b.end(); });
}

double rounded(double x, int bits) {
  if (x == 0 || !std::isfinite(x)) return x;
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits);
}

class Shrinker {
 public:
  Shrinker(const Case& failing, const JudgeCase& judge, const ShrinkOptions& options)
      : judge_(judge), options_(options), best_{failing, judge(failing), 1}, marks_(marks(best_.result)) {
    if (marks_.empty())
      fail("shrink: expected a case that fails, got ", reports::name(best_.result.outcome), " of ", to_id(failing),
           best_.result.reason.empty() ? "" : ": ", best_.result.reason);
  }

  Shrunk run() {
    std::string before;
    for (int round = 0; round < 4 && before != to_id(best_.smallest); ++round) {
      before = to_id(best_.smallest);
      sequences();
      heads();  // before tokens: a single head may need more of them
      tokens();
      head_sizes();
      plain_axes();
    }
    for (const TensorSpec& spec : op_info(problem().op).inputs(problem()))
      if (is_float(spec.dtype)) values(spec.name);
    return best_;
  }

 private:
  const Problem& problem() const { return best_.smallest.problem; }

  // Makes c the smallest when it still fails.
  bool take(Case c) {
    if (best_.runs >= options_.max_runs || (options_.stopped && options_.stopped())) return false;
    if (c == best_.smallest || !seen_.insert(to_id(c)).second) return false;
    try {
      check(c.problem);
    } catch (const Error&) {
      return false;
    }
    ++best_.runs;
    Result result = judge_(c);
    const bool same = result.outcome == best_.result.outcome && shares_one(marks(result), marks_);
    if (same) best_.smallest = std::move(c), best_.result = std::move(result);
    if (options_.progress) options_.progress(best_.runs, best_.smallest);
    return same;
  }
  bool take(const Cut& to) { return take(cut(best_.smallest, to)); }

  bool keep_sequences(std::size_t first, std::size_t end, bool inside) {
    const Cut all = whole(best_.smallest);
    Cut some = all;
    some.sequences.clear(), some.lengths.clear();
    for (std::size_t i = 0; i < all.sequences.size(); ++i)
      if ((i >= first && i < end) == inside) some.sequences.push_back(i), some.lengths.push_back(all.lengths[i]);
    return !some.sequences.empty() && take(some);
  }

  void sequences() {  // ddmin
    for (std::size_t parts = 2;;) {
      const std::size_t n = problem().lengths.size();
      parts = std::min(parts, n);
      if (n < 2) return;
      bool smaller = false;
      for (const bool inside : {true, false})
        for (std::size_t i = 0; i < parts && !smaller; ++i)
          if (keep_sequences(i * n / parts, (i + 1) * n / parts, inside)) {
            smaller = true;
            parts = inside ? 2 : std::max<std::size_t>(parts - 1, 2);
          }
      if (smaller) continue;
      if (parts == n) return;
      parts *= 2;
    }
  }

  bool shorten(std::optional<std::size_t> sequence, std::int64_t length) {  // none: all of them
    Cut to = whole(best_.smallest);
    for (std::size_t i = 0; i < to.lengths.size(); ++i)
      if (!sequence || *sequence == i) to.lengths[i] = std::min(to.lengths[i], length);
    return take(to);
  }
  std::int64_t length_of(std::optional<std::size_t> sequence) const {
    return sequence ? problem().lengths[*sequence] : *std::max_element(problem().lengths.begin(), problem().lengths.end());
  }

  void shorten(std::optional<std::size_t> sequence) {
    for (std::int64_t chunks = length_of(sequence) / options_.chunk; chunks > 0; chunks /= 2)
      while (length_of(sequence) >= chunks * options_.chunk &&
             shorten(sequence, length_of(sequence) - chunks * options_.chunk)) {
      }
    for (std::int64_t low = 0; low < length_of(sequence);) {
      const std::int64_t middle = low + (length_of(sequence) - low) / 2;
      if (!shorten(sequence, middle)) low = middle + 1;
    }
  }

  void tokens() {
    shorten(std::nullopt);
    if (problem().layout == Layout::packed && problem().lengths.size() > 1)
      for (std::size_t i = 0; i < problem().lengths.size(); ++i) shorten(i);
  }

  void heads() {
    const Cut all = whole(best_.smallest);
    std::set<std::int64_t> HKs{1, 2, all.HK}, HVs{1, 2, 4, all.HV};
    for (std::int64_t h = all.HK; h > 0; h /= 2) HKs.insert(h);
    for (std::int64_t h = all.HV; h > 0; h /= 2) HVs.insert(h);
    std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
    for (const std::int64_t HV : HVs)
      for (const std::int64_t HK : HKs)
        if (HK <= all.HK && HV <= all.HV && (HV % HK == 0 || !problem().op.starts_with("gdn"))) pairs.emplace_back(HK, HV);
    std::stable_sort(pairs.begin(), pairs.end(),
                     [](const auto& a, const auto& b) { return a.first + a.second < b.first + b.second; });
    for (const auto& [HK, HV] : pairs) {
      Cut to = all;
      to.HK = HK, to.HV = HV;
      if (take(to)) return;
    }
  }

  void head_sizes() {
    const Cut all = whole(best_.smallest);
    const auto smaller = [&](auto... members) {
      for (std::int64_t size = 1; size < std::max({all.*members...}); size *= 2) {
        Cut to = whole(best_.smallest);
        ((to.*members = std::min(to.*members, size)), ...);
        if (take(to)) return;
      }
    };
    smaller(&Cut::K, &Cut::V);
    smaller(&Cut::K);
    smaller(&Cut::V);
  }

  void plain_axes() {
    std::set<std::string_view> plain;
    for (const auto& [axis, text] : kPlain) {
      Case c = best_.smallest;
      try {
        set_axis(c, axis, text);
      } catch (const Error&) {  // another op's
        continue;
      }
      if (axis == "h0" && c.problem.h0.kind == "none")
        std::erase_if(c.overrides, [](const Override& o) { return o.tensor == "initial_state"; });
      if (axis == "raw_gate")
        std::erase_if(c.overrides, [](const Override& o) {
          return o.tensor == "raw_gate" || o.tensor == "A_log" || o.tensor == "dt_bias";
        });
      if (!plain.contains(axis) && (c == best_.smallest || take(c))) plain.insert(axis);
    }
    Case c = best_.smallest;
    c.problem.ids.clear();
    take(c);
  }

  // --- values ----------------------------------------------------------------------------------------------------
  TensorSpec spec_of(const std::string& tensor) const {
    for (const TensorSpec& spec : op_info(problem().op).inputs(problem()))
      if (spec.name == tensor) return spec;
    fail("shrink: no input ", tensor);
  }

  Case with(const std::string& tensor, std::vector<Override> instead) const {  // in place of those that it has
    Case c = best_.smallest;
    std::erase_if(c.overrides, [&](const Override& o) { return o.tensor == tensor; });
    c.overrides.insert(c.overrides.end(), instead.begin(), instead.end());
    return c;
  }

  bool constant(const std::string& tensor, double value) {
    return take(with(tensor, {{tensor, std::vector<std::string>(spec_of(tensor).shape.size(), "*"), value}}));
  }

  void values(const std::string& tensor) {
    const bool lattice = problem().data.kind == "lattice", vectors = tensor == "q" || tensor == "k";
    if (lattice && (tensor == "raw_gate" || tensor == "A_log" || tensor == "dt_bias")) return;  // its gates are 0 or closed
    const TensorSpec spec = spec_of(tensor);
    const std::int64_t rows = spec.token_dim == 0 ? problem().tokens() : spec.shape[0];
    const std::int64_t width =
        std::accumulate(spec.shape.begin() + 1, spec.shape.end(), std::int64_t{1}, std::multiplies<>());
    const Tensor now = get(make_inputs(best_.smallest), tensor);
    bool same = true;
    for (std::int64_t i = 1; i < rows * width; ++i) same = same && now.load(i) == now.load(0);
    if (same || constant(tensor, 0)) return;
    if (!lattice || !vectors) {  // of a lattice, only what leaves it one
      double one = 1;
      if (vectors) one = std::exp2(std::nearbyint(-std::log2(static_cast<double>(problem().K)) / 2));  // |k| about 1
      if (tensor == "g") one = -1;
      for (const double value : {one, one / 2})
        if (!(lattice && value != 1) && constant(tensor, value)) return;
    }
    zeroed_ = 0;
    zero(tensor, 0, rows, 0);
    if (!lattice && rows * width <= kFewElements) few_bits(spec, rows, width);
  }

  Override rows_at(const std::string& tensor, std::int64_t first, std::int64_t end, double value) const {
    Override o{tensor, std::vector<std::string>(spec_of(tensor).shape.size(), "*"), value};
    o.index[0] = std::to_string(first) + (end - first == 1 ? "" : ":" + std::to_string(end));
    return o;
  }

  // Rows [first, end) at 0, else halves of them.
  void zero(const std::string& tensor, std::int64_t first, std::int64_t end, int depth) {
    if (end - first < 1) return;
    if (depth > 0) {
      Case c = best_.smallest;
      std::int64_t from = first;
      if (!c.overrides.empty() && c.overrides.back() == rows_at(tensor, zeroed_, first, 0)) {  // goes on from there
        from = zeroed_;
        c.overrides.pop_back();
      }
      c.overrides.push_back(rows_at(tensor, from, end, 0));
      if (take(c)) {
        zeroed_ = from;
        return;
      }
    }
    if (depth == 3 || end - first < 2) return;
    const std::int64_t middle = first + (end - first) / 2;
    zero(tensor, first, middle, depth + 1);
    zero(tensor, middle, end, depth + 1);
  }

  // Every element by itself, or rows of one value together.
  void few_bits(const TensorSpec& spec, std::int64_t rows, std::int64_t width) {
    const Tensor now = get(make_inputs(best_.smallest), spec.name);
    for (const int bits : {1, 2, 4, 8}) {
      std::vector<Override> each;
      std::int64_t first = 0;  // of the rows that each.back() covers
      for (std::int64_t row = 0; row < rows; ++row) {
        const double value = rounded(now.load(row * width), bits);
        bool even = true;
        for (std::int64_t i = 1; i < width; ++i) even = even && rounded(now.load(row * width + i), bits) == value;
        if (even) {
          const bool goes_on = !each.empty() && each.back() == rows_at(spec.name, first, row, value);
          if (goes_on)
            each.pop_back();
          else
            first = row;
          each.push_back(rows_at(spec.name, first, row + 1, value));
          continue;
        }
        for (std::int64_t i = row * width; i < (row + 1) * width; ++i) {
          Override o{spec.name, std::vector<std::string>(spec.shape.size()), rounded(now.load(i), bits)};
          std::int64_t rest = i;
          for (std::size_t d = spec.shape.size(); d-- > 0; rest /= spec.shape[d])
            o.index[d] = std::to_string(rest % spec.shape[d]);
          each.push_back(std::move(o));
        }
      }
      if (take(with(spec.name, std::move(each)))) return;
    }
  }

  const JudgeCase& judge_;
  const ShrinkOptions& options_;
  Shrunk best_;
  const std::vector<std::string> marks_;
  std::set<std::string> seen_;
  std::int64_t zeroed_ = 0;  // first row of the last override that zero() made
};

}  // namespace

std::vector<std::string> marks(const Result& result) {
  if (result.outcome == Outcome::error) return {result.reason};
  if (result.outcome != Outcome::fail) return {};
  std::set<std::string, std::less<>> names;
  const Case c = parse_id(result.test);
  const OpInfo& op = op_info(c.problem.op);
  for (const auto& specs : {op.inputs(c.problem), op.outputs(c.problem)})
    for (const TensorSpec& spec : specs) names.insert(spec.name);
  for (const auto& [name, metrics] : result.tensors) names.insert(name);
  std::vector<std::string> found;
  for (std::size_t at = 0; at <= result.reason.size();) {  // the first tensor of every part between semicolons
    const std::size_t end = std::min(result.reason.find("; ", at), result.reason.size());
    std::string word;
    for (std::size_t i = at; i <= end; ++i) {
      const char ch = i < end ? result.reason[i] : ' ';
      if (std::isalnum(static_cast<unsigned char>(ch)) || ch == '_') {
        word += ch;
        continue;
      }
      if (names.contains(word)) {
        found.push_back(word);
        break;
      }
      word.clear();
    }
    at = end + 2;
  }
  if (found.empty()) found.push_back(result.reason);  // names no tensor
  return found;
}

Shrunk shrink(const Case& failing, const JudgeCase& judge, const ShrinkOptions& options) {
  return Shrinker(failing, judge, options).run();
}

}  // namespace deltagauge::validate
