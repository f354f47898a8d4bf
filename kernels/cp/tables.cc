// Fragment tables. Every kind but documents is a list of cuts and a rule that deals the pieces between them.
#include "kernels/cp/tables.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

#include "core/error.h"

namespace deltagauge::kernels::cp {
namespace {

// A cut, moved back as the request says.
std::int64_t moved(const TableRequest& request, std::int64_t cut) {
  const auto& cu = request.cu_seqlens;
  if (request.segment < 0 || cut >= cu.back()) return cut;
  const std::int64_t begin = *(std::upper_bound(cu.begin(), cu.end(), cut) - 1);
  return request.segment ? begin + (cut - begin) / request.segment * request.segment : begin;
}

// The pieces between the cuts, dealt to ranks by deal(piece, pieces).
template <class Deal>
FragmentTable dealt(const TableRequest& request, std::vector<std::int64_t> cuts, Deal deal) {
  for (std::int64_t& cut : cuts) cut = moved(request, cut);
  cuts.push_back(0);
  cuts.push_back(request.cu_seqlens.back());
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  FragmentTable table(static_cast<std::size_t>(request.world));
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i)
    table[static_cast<std::size_t>(deal(static_cast<std::int64_t>(i)))].push_back({cuts[i], cuts[i + 1]});
  return table;
}

std::vector<std::int64_t> even_cuts(const TableRequest& request, std::int64_t pieces) {
  std::vector<std::int64_t> cuts;
  for (std::int64_t i = 1; i < pieces; ++i) cuts.push_back(request.cu_seqlens.back() * i / pieces);
  return cuts;
}

FragmentTable contiguous(const TableRequest& request) {
  return dealt(request, even_cuts(request, request.world), [](std::int64_t i) { return i; });
}

FragmentTable zigzag(const TableRequest& request) {
  const std::int64_t last = 2 * request.world - 1;
  return dealt(request, even_cuts(request, 2 * request.world), [&](std::int64_t i) { return std::min(i, last - i); });
}

// Longest first, each to the rank with the fewest tokens so far.
FragmentTable documents(const TableRequest& request) {
  const auto& cu = request.cu_seqlens;
  std::vector<std::size_t> order(cu.size() - 1);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto length = [&](std::size_t n) { return cu[n + 1] - cu[n]; };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return length(a) > length(b); });
  FragmentTable table(static_cast<std::size_t>(request.world));
  std::vector<std::int64_t> load(table.size(), 0);
  for (const std::size_t n : order) {
    if (length(n) == 0) continue;
    const auto rank = static_cast<std::size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    table[rank].push_back({cu[n], cu[n + 1]});
    load[rank] += length(n);
  }
  return table;
}

// Contiguous, and the ranks in another order than their tokens.
FragmentTable rotated(const TableRequest& request) {
  return dealt(request, even_cuts(request, request.world), [&](std::int64_t i) { return (i + 1) % request.world; });
}

// Up to three fragments a rank, cut and dealt and ordered by chance.
FragmentTable scattered(const TableRequest& request) {
  std::mt19937_64 draw(request.seed);
  std::vector<std::int64_t> cuts;
  for (std::int64_t i = 1; i < 3 * request.world && request.cu_seqlens.back() > 0; ++i)
    cuts.push_back(static_cast<std::int64_t>(draw() % static_cast<std::uint64_t>(request.cu_seqlens.back())));
  FragmentTable table = dealt(request, cuts, [&](std::int64_t) {
    return static_cast<std::int64_t>(draw() % static_cast<std::uint64_t>(request.world));
  });
  for (auto& row : table)
    for (std::size_t i = row.size(); i > 1; --i) std::swap(row[i - 1], row[draw() % i]);
  return table;
}

constexpr TableKind kKinds[] = {
    {"contiguous", "one range a rank, in rank order", false, contiguous},
    {"zigzag", "two ranges a rank, one from either end", false, zigzag},
    {"documents", "whole documents, longest first, to the rank with the fewest tokens", true, documents},
    {"rotated", "one range a rank, the last rank's first", false, rotated},
    {"scattered", "up to three ranges a rank, by chance, in any order", false, scattered},
};

}  // namespace

std::span<const TableKind> table_kinds() { return kKinds; }

FragmentTable make_table(std::string_view kind, const TableRequest& request) {
  if (request.world < 1 || request.world > kMostRanks)
    fail("fragment table: expected 1 to ", kMostRanks, " ranks, got ", request.world);
  if (request.cu_seqlens.empty()) fail("fragment table: cu_seqlens: expected at least one entry, got none");
  if (request.cu_seqlens.back() > kMostTokens)
    fail("fragment table: cu_seqlens: expected at most ", kMostTokens, " tokens, got ", request.cu_seqlens.back());
  std::string known;
  for (const TableKind& one : kKinds) {
    if (one.name == kind) return one.make(request);
    known += " " + std::string(one.name);
  }
  fail("fragment table: expected one of", known, ", got '", kind, "'");
}

}  // namespace deltagauge::kernels::cp
