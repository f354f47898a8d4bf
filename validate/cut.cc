#include "validate/cut.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "core/op.h"

namespace deltagauge::validate {
namespace {

using Range = std::pair<std::int64_t, std::int64_t>;  // [first, second)

// Where pieces of an axis come to lie: old indices [first, first + count) become [now, now + count).
struct Piece {
  std::int64_t first, count, now;
};

Range parse(const std::string& text) {  // a number or a:b
  const auto colon = text.find(':');
  const std::int64_t first = std::stoll(text);
  return {first, colon == std::string::npos ? first + 1 : std::stoll(text.substr(colon + 1))};
}

std::string text_of(const Range& r) {
  return r.second == r.first + 1 ? std::to_string(r.first) : std::to_string(r.first) + ":" + std::to_string(r.second);
}

// An index of an override after the cut: none, one or several ranges. * stays *.
std::vector<std::string> moved(const std::string& index, const std::vector<Piece>& pieces) {
  if (index == "*") return {index};
  const Range old = parse(index);
  std::vector<Range> ranges;
  for (const Piece& piece : pieces) {
    const std::int64_t first = std::max(old.first, piece.first), end = std::min(old.second, piece.first + piece.count);
    if (first >= end) continue;
    const Range now{first - piece.first + piece.now, end - piece.first + piece.now};
    if (!ranges.empty() && ranges.back().second == now.first)
      ranges.back().second = now.second;
    else
      ranges.push_back(now);
  }
  std::vector<std::string> texts;
  for (const Range& range : ranges) texts.push_back(text_of(range));
  return texts;
}

std::vector<Piece> row_pieces(const Problem& from, const Problem& to, const Cut& cut) {
  std::vector<Piece> pieces;
  const auto old = from.offsets(), now = to.offsets();
  for (std::size_t i = 0; i < cut.sequences.size(); ++i) pieces.push_back({old[cut.sequences[i]], to.lengths[i], now[i]});
  pieces.push_back({from.tokens(), from.rows() - from.tokens(), to.tokens()});
  return pieces;
}

std::vector<Piece> sequence_pieces(const Cut& cut) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < cut.sequences.size(); ++i)
    pieces.push_back({static_cast<std::int64_t>(cut.sequences[i]), 1, static_cast<std::int64_t>(i)});
  return pieces;
}

std::vector<Section> sections_of(const Problem& p, std::string_view tensor) {
  for (const TensorSpec& spec : op_info(p.op).inputs(p))
    if (spec.name == tensor) return spec.sections;
  return {};
}

// Along packed rows: what stays of each head of each section.
std::vector<Piece> section_pieces(const std::vector<Section>& from, const std::vector<Section>& to) {
  std::vector<Piece> pieces;
  std::int64_t old = 0, now = 0;
  for (std::size_t s = 0; s < to.size(); ++s) {
    for (std::int64_t h = 0; h < to[s].heads; ++h)
      pieces.push_back({old + h * from[s].width, to[s].width, now + h * to[s].width});
    old += from[s].heads * from[s].width;
    now += to[s].heads * to[s].width;
  }
  return pieces;
}

std::vector<Override> moved(const Override& o, const Problem& from, const Problem& to, const Cut& cut) {
  const auto specs = op_info(to.op).inputs(to);
  const auto spec = std::find_if(specs.begin(), specs.end(), [&](const TensorSpec& s) { return s.name == o.tensor; });
  if (spec == specs.end() || spec->shape.size() != o.index.size()) return {o};  // make_inputs says what is wrong
  if (spec->name == "cu_seqlens") return {};                                    // it follows from the lengths
  std::vector<Override> all{{o.tensor, {}, o.value}};
  for (std::size_t d = 0; d < o.index.size(); ++d) {
    const bool tokens = static_cast<int>(d) == spec->token_dim, states = d == 0 && spec->shape.size() == 4 && !to.slots;
    const bool packed = d + 1 == spec->shape.size() && !spec->sections.empty();
    const auto pieces = tokens   ? row_pieces(from, to, cut)
                        : states ? sequence_pieces(cut)
                        : packed ? section_pieces(sections_of(from, o.tensor), spec->sections)
                                 : std::vector<Piece>{{0, spec->shape[d], 0}};
    std::vector<Override> next;
    for (const Override& one : all)
      for (const std::string& index : moved(o.index[d], pieces)) {
        next.push_back(one);
        next.back().index.push_back(index);
      }
    all = std::move(next);
  }
  return all;
}

}  // namespace

Cut whole(const Case& c) {
  const Problem& p = c.problem;
  Cut all{{}, p.lengths, p.HK, p.HV, p.K, p.V};
  all.sequences.resize(p.lengths.size());
  std::iota(all.sequences.begin(), all.sequences.end(), std::size_t{0});
  return all;
}

Case cut(const Case& c, const Cut& to) {
  Case out = c;
  Problem& p = out.problem;
  p.lengths = to.lengths;
  p.ids.clear();
  bool plain = true;  // names that are the places need not be said
  for (std::size_t i = 0; i < to.sequences.size(); ++i) {
    const std::size_t place = to.sequences[i];
    p.ids.push_back(c.problem.ids.empty() ? static_cast<std::int64_t>(place) : c.problem.ids[place]);
    plain = plain && p.ids.back() == static_cast<std::int64_t>(i);
  }
  if (plain) p.ids.clear();
  const std::int64_t padding = c.problem.rows() - c.problem.tokens();
  p.capacity = padding > 0 ? p.tokens() + padding : 0;
  p.HK = to.HK, p.HV = to.HV, p.K = to.K, p.V = to.V;
  out.overrides.clear();
  for (const Override& o : c.overrides)
    for (Override& one : moved(o, c.problem, p, to)) out.overrides.push_back(std::move(one));
  return out;
}

}  // namespace deltagauge::validate
