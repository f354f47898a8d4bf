// Fragment tables: common ways of dividing a packed stream over ranks (docs/cp.md).
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/cp/plan.h"

namespace deltagauge::kernels::cp {

// What tables are made of. Ranks that get no token have an empty row.
struct TableRequest {
  std::span<const std::int64_t> cu_seqlens;  // of the whole stream
  std::int64_t world = 1;
  std::int64_t segment = 0;  // move cuts back to the canonical boundary before them (0: a document's start); -1: leave them
  std::uint64_t seed = 0;    // of the tables that are drawn
};

struct TableKind {
  std::string_view name, summary;
  bool documents;  // no cut inside a document, whatever is asked for
  FragmentTable (*make)(const TableRequest&);
};
// contiguous zigzag documents rotated scattered
std::span<const TableKind> table_kinds();
FragmentTable make_table(std::string_view kind, const TableRequest& request);  // throws Error naming the known kinds

}  // namespace deltagauge::kernels::cp
