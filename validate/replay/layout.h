// Layouts of a captured capacity of T rows and N sequences: nine classes of lengths, and for a state pool (docs/math.md)
// slots and flags drawn beside them. docs/replay.md says what each class is for.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem.h"

namespace deltagauge::validate {

enum class LayoutClass : std::uint8_t {
  full,            // every sequence has tokens and the last ends at T
  partial,         // every sequence has tokens and the last ends below T
  one_token,       // one token a sequence
  empty_head,      // the first sequence is empty, the others are not
  empty_middle,    // one between the first and the last is empty, the others are not
  empty_tail,      // the last is empty, the others are not and fill all T rows
  fewer,           // two or more at the end are empty: their offsets repeat the end, which is below T
  all_empty,       // no token at all
  one_token_tail,  // the last sequence is one token longer than whole chunks, and ends below T
};
struct LayoutInfo {
  std::string_view name, meaning;
};
std::span<const LayoutInfo> layout_classes();  // nine, in the order of LayoutClass
std::string_view name(LayoutClass which);

// Why a capacity has no such layouts, or nothing.
std::optional<std::string> no_layouts(const Problem& capacity);

// A problem with the capacity's T, N and pool, with lengths of that class and, where there is a pool, idx and has as lists.
// All of it follows from the seed.
Problem layout_of(const Problem& capacity, LayoutClass which, std::uint64_t seed);
// Equal lengths, as nearly as may be, over that part of T; of one-token ops, slots for that part of the sequences. Rounded
// to whole tokens, at least one.
Problem active_layout(const Problem& capacity, double part);
std::int64_t active_tokens(const Problem& layout);  // rows with work
std::int64_t most_active(const Problem& capacity);  // T; of one-token ops, N

std::string in_words(const Problem& layout);  // lengths, slots and flags, for messages

// A closed walk over the classes that takes every ordered pair of them once, which is as short as such a walk can be: 82
// steps, from full back to full.
std::vector<LayoutClass> walk(std::uint64_t seed);

}  // namespace deltagauge::validate
