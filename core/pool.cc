#include "core/pool.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/op.h"

namespace deltagauge {
namespace {

constexpr std::int64_t kMaxSlot = std::numeric_limits<std::int32_t>::max();

std::int64_t integer(std::string_view axis, std::string_view text, std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  const char* last = text.data() + text.size();
  const auto result = std::from_chars(text.data(), last, value);
  if (result.ec != std::errc() || result.ptr != last || value < least || value > most)
    fail(axis, ": expected an integer in [", least, ", ", most, "], got '", text, "'");
  return value;
}

// I+I+..., negative numbers too: 3+-1+0.
std::vector<std::int64_t> list(std::string_view axis, std::string_view text, std::int64_t least, std::int64_t most) {
  std::vector<std::int64_t> numbers;
  for (;;) {
    const auto plus = text.find('+');
    numbers.push_back(integer(axis, text.substr(0, plus), least, most));
    if (plus == std::string_view::npos) return numbers;
    text.remove_prefix(plus + 1);
  }
}

// kind or kind=SEED to the seed, or -1 when text is something else.
std::int64_t seed_of(std::string_view text, std::string_view kind) {
  if (text == kind) return 0;
  if (!text.starts_with(kind) || text[kind.size()] != '=') return -1;
  return integer("idx=" + std::string(kind), text.substr(kind.size() + 1), 0, std::numeric_limits<std::int64_t>::max());
}

std::string joined(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (const std::int64_t number : numbers) text += (text.empty() ? "" : "+") + std::to_string(number);
  return text;
}

std::int64_t name_of(const Problem& p, std::size_t n) { return p.ids.empty() ? static_cast<std::int64_t>(n) : p.ids[n]; }

// Entry of every sequence's name in a list.
std::vector<std::int64_t> by_name(const Problem& p, std::string_view axis, const std::vector<std::int64_t>& entries) {
  std::vector<std::int64_t> values;
  for (std::size_t n = 0; n < p.lengths.size(); ++n) {
    const auto name = static_cast<std::size_t>(name_of(p, n));
    if (name >= entries.size()) fail(axis, ": expected an entry for sequence ", name, ", got ", entries.size(), " entries");
    values.push_back(entries[name]);
  }
  return values;
}

// Slots 1 .. P - 1 in an order of that seed; the standard fixes the generator's numbers.
std::vector<std::int64_t> shuffled(std::int64_t slots, std::int64_t seed) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(slots - 1));
  std::iota(order.begin(), order.end(), std::int64_t{1});
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  for (std::size_t i = order.size(); i-- > 1;) std::swap(order[i], order[random() % (i + 1)]);
  return order;
}

}  // namespace

std::vector<std::int64_t> Problem::state_indices() const {
  if (slots == 0) return {};
  const std::int64_t permuted = seed_of(idx, "permuted"), holes = seed_of(idx, "holes");
  if (idx != "iota" && permuted < 0 && holes < 0) return by_name(*this, "idx", list("idx", idx, -kMaxSlot, kMaxSlot));
  std::vector<std::int64_t> order(static_cast<std::size_t>(slots - 1));
  std::iota(order.begin(), order.end(), std::int64_t{1});
  if (idx != "iota") order = shuffled(slots, std::max(permuted, holes));
  std::vector<std::int64_t> indices = by_name(*this, "idx", order);
  for (std::size_t n = 0; holes >= 0 && n < indices.size(); ++n)  // of four names one gets -1 and one 0
    if (const std::int64_t name = name_of(*this, n); name % 2 == 1) indices[n] = name % 4 == 1 ? -1 : 0;
  return indices;
}

std::vector<bool> Problem::has_initial_state() const {
  if (slots == 0) return {};
  std::vector<bool> flags;
  if (has == "on" || has == "off" || has == "mixed") {
    for (std::size_t n = 0; n < lengths.size(); ++n)
      flags.push_back(has == "on" || (has == "mixed" && name_of(*this, n) % 4 < 2));
    return flags;
  }
  for (const std::int64_t flag : by_name(*this, "has", list("has", has, 0, 1))) flags.push_back(flag != 0);
  return flags;
}

namespace pool {

std::string parse_idx(std::string_view text) {
  if (text == "iota") return "iota";
  for (const std::string_view kind : {"permuted", "holes"})
    if (const std::int64_t seed = seed_of(text, kind); seed >= 0)
      return seed ? std::string(kind) + "=" + std::to_string(seed) : std::string(kind);
  if (text.empty() || (text[0] != '-' && (text[0] < '0' || text[0] > '9')))
    fail("idx: expected iota, permuted, holes, permuted=SEED, holes=SEED or slots as in 3+-1+5, got '", text, "'");
  return joined(list("idx", text, -kMaxSlot, kMaxSlot));
}

std::string parse_has(std::string_view text) {
  if (text == "on" || text == "off" || text == "mixed") return std::string(text);
  if (text.empty() || (text[0] != '0' && text[0] != '1'))
    fail("has: expected on, off, mixed or flags as in 1+0+1, got '", text, "'");
  return joined(list("has", text, 0, 1));
}

void check(const Problem& p) {
  const bool decode = op_info(p.op).one_token;
  if (p.slots == 0) {
    if (decode) fail("slots: expected a pool of at least 2 slots for op ", p.op, ", got slots=0");
    if (p.slot_pad || p.idx != "iota" || p.has != "on")
      fail("slots: expected a pool (slots=P) beside slot_pad, idx and has, got slots=0");
    return;
  }
  if (p.op != "gdn" && !decode) fail("slots: expected 0 for op ", p.op, ", which has no state, got ", p.slots);
  if (p.slots < 2) fail("slots: expected 0 or at least 2, since slot 0 is reserved, got ", p.slots);
  if (p.h0.kind == "none") fail("slots: expected h0=zero or h0=normal=S beside a pool, got h0=none");
  if (p.final_state == Switch::off) fail("slots: expected final=on, since a pool is advanced in place, got final=off");
  std::vector<std::int64_t> taken;
  for (const std::int64_t slot : p.state_indices()) {
    if (slot >= p.slots) fail("idx: expected slots below ", p.slots, ", got ", slot);
    if (slot > 0) taken.push_back(slot);
  }
  std::sort(taken.begin(), taken.end());
  if (const auto twice = std::adjacent_find(taken.begin(), taken.end()); twice != taken.end())
    fail("idx: expected each slot once, got ", *twice, " twice");
  p.has_initial_state();
}

}  // namespace pool
}  // namespace deltagauge
