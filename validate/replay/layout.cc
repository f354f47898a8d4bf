#include "validate/replay/layout.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "core/error.h"
#include "core/op.h"

namespace deltagauge::validate {
namespace {

using Random = std::mt19937_64;  // its numbers are fixed by the standard; what is drawn from them is plain arithmetic
using Lengths = std::vector<std::int64_t>;

constexpr LayoutInfo kClasses[] = {
    {"full", "every sequence has tokens, the last ends at T"},
    {"partial", "every sequence has tokens, the last ends below T"},
    {"one-token", "one token a sequence"},
    {"empty-head", "the first sequence is empty"},
    {"empty-middle", "one sequence between the first and the last is empty"},
    {"empty-tail", "the last sequence is empty, the others fill T"},
    {"fewer", "two or more sequences at the end are empty, the offsets repeat an end below T"},
    {"all-empty", "no token at all"},
    {"one-token-tail", "the last sequence is one token longer than whole chunks, and ends below T"},
};

std::int64_t draw(Random& random, std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - least + 1));
}

// total as a sum of so many numbers, each at least 1.
Lengths parts_of(Random& random, std::int64_t total, std::int64_t parts) {
  std::set<std::int64_t> cuts{total};
  while (static_cast<std::int64_t>(cuts.size()) < parts) cuts.insert(draw(random, 1, total - 1));
  Lengths lengths;
  for (std::int64_t before = 0; const std::int64_t cut : cuts) {
    lengths.push_back(cut - before);
    before = cut;
  }
  return lengths;
}

Lengths lengths_of(Random& random, LayoutClass which, std::int64_t T, std::int64_t N, std::int64_t chunk) {
  const auto with_empty = [&](std::int64_t end, std::int64_t place) {
    Lengths lengths = parts_of(random, end, N - 1);
    lengths.insert(lengths.begin() + place, 0);
    return lengths;
  };
  const std::int64_t end = random() % 2 ? T : draw(random, N, T);
  switch (which) {
    case LayoutClass::full:
      return parts_of(random, T, N);
    case LayoutClass::partial:
      return parts_of(random, draw(random, N, T - 1), N);
    case LayoutClass::one_token:
      return Lengths(static_cast<std::size_t>(N), 1);
    case LayoutClass::empty_head:
      return with_empty(end, 0);
    case LayoutClass::empty_middle:
      return with_empty(end, draw(random, 1, N - 2));
    case LayoutClass::empty_tail:
      return with_empty(T, N - 1);
    case LayoutClass::fewer: {
      const std::int64_t used = draw(random, 1, N - 2);
      Lengths lengths = parts_of(random, draw(random, used, T - 1), used);
      lengths.resize(static_cast<std::size_t>(N), 0);
      return lengths;
    }
    case LayoutClass::all_empty:
      return Lengths(static_cast<std::size_t>(N), 0);
    case LayoutClass::one_token_tail: {
      const std::int64_t most = (T - 1 - N) / chunk;  // whole chunks of the last that leave the others a token each
      const std::int64_t last = (most > 0 ? draw(random, 1, most) : 0) * chunk + 1;
      Lengths lengths = parts_of(random, draw(random, N - 1, T - 1 - last), N - 1);
      lengths.push_back(last);
      return lengths;
    }
  }
  return {};
}

std::string joined(const Lengths& numbers) {
  std::string text;
  for (const std::int64_t number : numbers) text += (text.empty() ? "" : "+") + std::to_string(number);
  return text;
}

// Slots in or out of order, with or without -1 and 0 among them; flags all on, all off or mixed.
void draw_pool(Random& random, Problem& p) {
  const auto N = static_cast<std::size_t>(p.sequences());
  Lengths order(static_cast<std::size_t>(p.slots - 1));
  std::iota(order.begin(), order.end(), std::int64_t{1});
  if (random() % 4)
    for (std::size_t i = order.size(); i-- > 1;) std::swap(order[i], order[random() % (i + 1)]);
  order.resize(N);
  if (random() % 2) {
    order[random() % N] = -1;
    for (std::int64_t& slot : order)
      if (random() % 4 == 0) slot = random() % 2 ? -1 : 0;
  }
  const std::uint64_t style = random() % 4;
  Lengths flags(N, 1);
  for (std::int64_t& flag : flags) flag = style == 0 ? 1 : style == 1 ? 0 : static_cast<std::int64_t>(random() % 2);
  p.idx = joined(order);
  p.has = joined(flags);
}

// Of one-token ops a sequence without a slot is what an empty one is elsewhere.
void empty_to_no_slot(Random& random, Problem& p) {
  Lengths slots = p.state_indices();
  for (std::size_t n = 0; n < slots.size(); ++n)
    if (p.lengths[n] == 0) slots[n] = random() % 2 ? -1 : 0;
  p.idx = joined(slots);
  std::ranges::fill(p.lengths, 1);
}

}  // namespace

std::span<const LayoutInfo> layout_classes() { return kClasses; }
std::string_view name(LayoutClass which) { return kClasses[static_cast<std::size_t>(which)].name; }

std::optional<std::string> no_layouts(const Problem& capacity) {
  if (capacity.layout != Layout::packed) return "layout: expected packed, since lengths change between replays, got dense";
  if (capacity.sequences() < 3) return "len: expected at least 3 sequences, got " + std::to_string(capacity.sequences());
  if (!op_info(capacity.op).one_token && capacity.rows() < capacity.sequences() + 2)
    return "len: expected at least " + std::to_string(capacity.sequences() + 2) + " rows for " +
           std::to_string(capacity.sequences()) + " sequences, got " + std::to_string(capacity.rows());
  return std::nullopt;
}

Problem layout_of(const Problem& capacity, LayoutClass which, std::uint64_t seed) {
  if (const auto why = no_layouts(capacity)) fail(*why);
  Random random(seed);
  Problem p = capacity;
  p.capacity = capacity.rows();
  p.ids.clear();
  const bool one_token = op_info(p.op).one_token;
  const std::int64_t T = one_token ? 2 * p.sequences() + 2 : p.capacity;
  p.lengths = lengths_of(random, which, T, capacity.sequences(), capacity.chunk);
  if (p.slots) draw_pool(random, p);
  if (one_token) empty_to_no_slot(random, p);
  check(p);
  return p;
}

Problem active_layout(const Problem& capacity, double part) {
  Problem p = capacity;
  p.capacity = capacity.rows();
  p.ids.clear();
  if (p.slots) p.idx = "iota", p.has = "on";
  const auto end = std::max<std::int64_t>(1, std::llround(part * static_cast<double>(most_active(capacity))));
  const std::int64_t N = p.sequences();
  if (op_info(p.op).one_token) {
    Lengths slots(static_cast<std::size_t>(N), -1);
    std::iota(slots.begin(), slots.begin() + end, std::int64_t{1});
    p.idx = joined(slots);
    return p;
  }
  for (std::int64_t n = 0; n < N; ++n) p.lengths[static_cast<std::size_t>(n)] = end / N + (n < end % N ? 1 : 0);
  return p;
}

std::int64_t most_active(const Problem& p) { return op_info(p.op).one_token ? p.sequences() : p.rows(); }

std::int64_t active_tokens(const Problem& p) {
  const auto slots = p.state_indices();
  const auto idle = op_info(p.op).one_token ? std::ranges::count_if(slots, [](std::int64_t slot) { return slot <= 0; }) : 0;
  return p.tokens() - idle;
}

std::string in_words(const Problem& layout) {
  std::string text = "len=" + joined(layout.lengths);
  if (layout.slots) text += ", idx=" + layout.idx + ", has=" + layout.has;
  return text;
}

std::vector<LayoutClass> walk(std::uint64_t seed) {
  constexpr std::size_t kCount = std::size(kClasses);
  Random random(seed);
  std::vector<std::vector<std::size_t>> left(kCount, std::vector<std::size_t>(kCount));  // ends of the edges not yet taken
  for (auto& ends : left) {
    std::iota(ends.begin(), ends.end(), std::size_t{0});
    for (std::size_t i = kCount; i-- > 1;) std::swap(ends[i], ends[random() % (i + 1)]);
  }
  // Every class has as many edges in as out, so walking on until stuck and joining the loops on the way back takes them all.
  std::vector<std::size_t> stack{static_cast<std::size_t>(LayoutClass::full)};
  std::vector<LayoutClass> steps;
  while (!stack.empty()) {
    auto& ends = left[stack.back()];
    if (ends.empty()) {
      steps.push_back(static_cast<LayoutClass>(stack.back()));
      stack.pop_back();
    } else {
      const std::size_t next = ends.back();
      ends.pop_back();
      stack.push_back(next);
    }
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

}  // namespace deltagauge::validate
