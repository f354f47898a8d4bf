// Ownership plans: check the table, cut fragments into segments, then walk each document both ways.
#include "kernels/cp/plan.h"

#include <algorithm>

#include "core/error.h"

namespace deltagauge::kernels::cp {
namespace {

struct Owner {
  Fragment tokens;
  std::int64_t rank, fragment;
};

void check_documents(std::span<const std::int64_t> cu_seqlens) {
  if (cu_seqlens.empty() || cu_seqlens.front() != 0)
    fail("cp plan: cu_seqlens: expected to start at 0, got ",
         cu_seqlens.empty() ? "no entry" : std::to_string(cu_seqlens.front()));
  for (std::size_t n = 1; n < cu_seqlens.size(); ++n)
    if (cu_seqlens[n] < cu_seqlens[n - 1])
      fail("cp plan: cu_seqlens[", n, "]: expected at least ", cu_seqlens[n - 1], ", got ", cu_seqlens[n]);
  if (cu_seqlens.back() > kMostTokens)
    fail("cp plan: cu_seqlens: expected at most ", kMostTokens, " tokens, got ", cu_seqlens.back());
}

// The document of a token that is in one.
std::int64_t document_of(std::span<const std::int64_t> cu_seqlens, std::int64_t token) {
  return std::upper_bound(cu_seqlens.begin(), cu_seqlens.end(), token) - cu_seqlens.begin() - 1;
}

// All fragments in token order, after checking that they tile [0, tokens).
std::vector<Owner> owners_of(std::span<const std::int64_t> cu_seqlens, const FragmentTable& table) {
  const std::int64_t tokens = cu_seqlens.back();
  if (table.empty()) fail("cp plan: fragment table: expected at least one rank, got none");
  std::vector<Owner> owners;
  for (std::size_t r = 0; r < table.size(); ++r)
    for (std::size_t f = 0; f < table[r].size(); ++f) {
      const Fragment& at = table[r][f];
      if (at.first < 0 || at.first >= at.end || at.end > tokens)
        fail("cp plan: fragment ", f, " of rank ", r, ": expected 0 <= first < end <= ", tokens, ", got [", at.first, ", ",
             at.end, ")");
      owners.push_back({at, static_cast<std::int64_t>(r), static_cast<std::int64_t>(f)});
    }
  std::sort(owners.begin(), owners.end(), [](const Owner& a, const Owner& b) { return a.tokens.first < b.tokens.first; });
  const auto place = [&](std::int64_t token) {
    const std::int64_t n = document_of(cu_seqlens, token);
    return "token " + std::to_string(token) + " (document " + std::to_string(n) + ", its token " +
           std::to_string(token - cu_seqlens[static_cast<std::size_t>(n)]) + ")";
  };
  std::int64_t next = 0;
  const Owner* before = nullptr;
  for (const Owner& owner : owners) {
    if (owner.tokens.first > next) fail("cp plan: ", place(next), ": expected one owner, got none");
    if (owner.tokens.first < next)
      fail("cp plan: ", place(owner.tokens.first), ": expected one owner, got fragment ", before->fragment, " of rank ",
           before->rank, " and fragment ", owner.fragment, " of rank ", owner.rank);
    next = owner.tokens.end;
    before = &owner;
  }
  if (next < tokens) fail("cp plan: ", place(next), ": expected one owner, got none");
  return owners;
}

void add_segment(RankPlan& rank, Segment segment) {
  segment.row = rank.cu_seqlens.back();
  rank.cu_seqlens.push_back(segment.row + segment.end - segment.first);
  rank.segments.push_back(segment);
}

// The pieces of one fragment, at document and canonical boundaries.
void add_fragment(const Plan& plan, RankPlan& rank, std::int64_t f) {
  const Fragment& fragment = rank.fragments[static_cast<std::size_t>(f)];
  for (std::int64_t first = fragment.first; first < fragment.end;) {
    const std::int64_t n = document_of(plan.cu_seqlens, first);
    const std::int64_t begin = plan.cu_seqlens[static_cast<std::size_t>(n)],
                       stop = plan.cu_seqlens[static_cast<std::size_t>(n + 1)];
    const std::int64_t canonical = plan.segment ? (first - begin) / plan.segment : 0;
    const std::int64_t boundary = plan.segment ? begin + (canonical + 1) * plan.segment : stop;
    const std::int64_t end = std::min({fragment.end, stop, boundary});
    add_segment(rank, {n, first, end, canonical, 0, f, first == begin, end == stop});
    first = end;
  }
}

struct Place {
  std::int64_t rank, segment;  // of the rank's segments
};

// One document, its segments in the order of the walk (step 1: forward in token order, -1: reverse). A segment that follows
// its forerunner in the span goes one step on from it; any other folds every forerunner, which are then published.
void route(std::vector<RankPlan>& ranks, const std::vector<Place>& walk, Flow RankPlan::*flow, std::int64_t step) {
  std::size_t publish = 0;  // the first of these are needed elsewhere
  for (std::size_t i = 1; i < walk.size(); ++i)
    if (walk[i].rank != walk[i - 1].rank || walk[i].segment != walk[i - 1].segment + step) publish = i;
  std::vector<Slot> slots;
  for (std::size_t i = 0; i < walk.size(); ++i) {
    Flow& own = ranks[static_cast<std::size_t>(walk[i].rank)].*flow;
    Source& source = own.sources[static_cast<std::size_t>(walk[i].segment)];
    if (i > 0) {
      const bool beside = walk[i].rank == walk[i - 1].rank && walk[i].segment == walk[i - 1].segment + step;
      source.kind = beside ? Source::Kind::neighbour : Source::Kind::fold;
      if (!beside) source.slots = slots;
    }
    if (i >= publish) continue;
    slots.push_back({walk[i].rank, static_cast<std::int64_t>(own.published.size())});
    own.published.push_back(walk[i].segment);
  }
}

}  // namespace

std::int64_t Plan::slots() const {
  std::size_t most = 0;
  for (const RankPlan& rank : ranks) most = std::max({most, rank.forward.published.size(), rank.reverse.published.size()});
  return static_cast<std::int64_t>(most);
}

Plan plan(std::span<const std::int64_t> cu_seqlens, const FragmentTable& table, std::int64_t segment) {
  check_documents(cu_seqlens);
  if (segment < 0 || segment > kMostSegment || segment % kChunk)
    fail("cp plan: segment: expected 0 or a multiple of ", kChunk, " up to ", kMostSegment, ", got ", segment);
  const std::vector<Owner> owners = owners_of(cu_seqlens, table);
  Plan plan{cu_seqlens.back(), segment, {cu_seqlens.begin(), cu_seqlens.end()}, {}};
  for (const std::vector<Fragment>& fragments : table) {
    RankPlan& rank = plan.ranks.emplace_back();
    rank.fragments = fragments;
    rank.cu_seqlens = {0};
    for (std::size_t f = 0; f < fragments.size(); ++f) add_fragment(plan, rank, static_cast<std::int64_t>(f));
  }
  for (std::size_t n = 0; n + 1 < cu_seqlens.size(); ++n)
    if (cu_seqlens[n] == cu_seqlens[n + 1])
      add_segment(plan.ranks[0], {static_cast<std::int64_t>(n), cu_seqlens[n], cu_seqlens[n], 0, 0, -1, true, true});

  std::vector<std::vector<Place>> documents(cu_seqlens.size() - 1);
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    RankPlan& rank = plan.ranks[r];
    for (Flow* flow : {&rank.forward, &rank.reverse}) flow->sources.resize(rank.segments.size());
    for (std::size_t s = 0; s < rank.segments.size(); ++s)
      documents[static_cast<std::size_t>(rank.segments[s].document)].push_back(
          {static_cast<std::int64_t>(r), static_cast<std::int64_t>(s)});
  }
  const auto first_token = [&](const Place& at) {
    return plan.ranks[static_cast<std::size_t>(at.rank)].segments[static_cast<std::size_t>(at.segment)].first;
  };
  for (std::vector<Place>& walk : documents) {
    std::sort(walk.begin(), walk.end(), [&](const Place& a, const Place& b) { return first_token(a) < first_token(b); });
    route(plan.ranks, walk, &RankPlan::forward, 1);
    std::reverse(walk.begin(), walk.end());
    route(plan.ranks, walk, &RankPlan::reverse, -1);
  }
  return plan;
}

bool canonical(const Plan& plan) {
  for (const RankPlan& rank : plan.ranks)
    for (const Segment& s : rank.segments) {
      const std::int64_t from = s.first - plan.cu_seqlens[static_cast<std::size_t>(s.document)];
      if (from != s.canonical * plan.segment) return false;
    }
  return true;
}

}  // namespace deltagauge::kernels::cp
