// Context parallelism, who owns which tokens (docs/cp.md). What a plan is built from is global: the documents of the packed
// stream and, per rank, the token ranges it owns. From that follow, per rank, the segments of its span, whose state each
// needs, and what is published for others.
//   fragment   a token range that a rank owns; may cover several documents, may be cut at any token
//   span       a rank's fragments one after the other, in the order of its row: the packed rows it holds
//   segment    the tokens of one fragment in one canonical segment of one document: a sequence of the local cu_seqlens
//   canonical  segments of `segment` tokens counted from the start of their document, whoever owns them; 0: whole documents
//   slot       a place of a rank's published buffer: what one of its segments does to the state, [HV, V + K, K]
// The entry state of a segment is a left fold over all segments before it in its document, in token order. A plan whose cuts
// fall on canonical boundaries has the same segments for every table, so the walk does not know how many ranks there are.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace deltagauge::kernels::cp {

inline constexpr std::int64_t kChunk = 64;  // tokens of a chunk; canonical segments are multiples of it
inline constexpr std::int64_t kMostTokens = (std::int64_t{1} << 31) - 1;     // of a stream: the routing is int32
inline constexpr std::int64_t kMostSegment = kMostTokens / kChunk * kChunk;  // tokens of a canonical segment
inline constexpr std::int64_t kMostRanks = std::int64_t{1} << 16;            // of a table

struct Fragment {
  std::int64_t first = 0, end = 0;  // global tokens [first, end)
  friend bool operator==(const Fragment&, const Fragment&) = default;
};
using FragmentTable = std::vector<std::vector<Fragment>>;  // by rank, in the order of its span

struct Segment {
  std::int64_t document = 0;
  std::int64_t first = 0, end = 0;    // global tokens
  std::int64_t canonical = 0;         // number of the canonical segment in its document
  std::int64_t row = 0;               // of its first token in the span
  std::int64_t fragment = 0;          // of its rank
  bool starts = false, ends = false;  // its document: entry from the initial state, exit is the final state
};

struct Slot {
  std::int64_t rank = 0, slot = 0;
  friend bool operator==(const Slot&, const Slot&) = default;
};

// Where the state at a segment's edge comes from.
struct Source {
  enum class Kind {
    edge,       // the document's own: its initial state (forward), its final cotangent (reverse)
    neighbour,  // one step on from the segment beside it in the span
    fold        // slots, folded in order
  } kind = Kind::edge;
  std::vector<Slot> slots{};
};

// One direction of the exchange. forward: entry states, from maps of earlier segments. reverse: exit cotangents, from maps
// of later segments, for the backward pass.
struct Flow {
  std::vector<std::int64_t> published;  // by slot: the segment
  std::vector<Source> sources;          // by segment
};

struct RankPlan {
  std::vector<Fragment> fragments;
  std::vector<Segment> segments;         // in span order
  std::vector<std::int64_t> cu_seqlens;  // [segments + 1]
  Flow forward, reverse;
  std::int64_t tokens() const { return cu_seqlens.back(); }
};

struct Plan {
  std::int64_t tokens = 0;   // of the stream
  std::int64_t segment = 0;  // tokens of a canonical segment; 0: documents are not cut
  std::vector<std::int64_t> cu_seqlens;
  std::vector<RankPlan> ranks;
  std::int64_t world() const { return static_cast<std::int64_t>(ranks.size()); }
  std::int64_t slots() const;  // of the rank that publishes most, in either direction
};

// cu_seqlens: of the whole stream, from 0. A document without tokens becomes an empty segment at the end of rank 0. Throws
// Error with expected and got when the fragments do not own every token exactly once, or segment is no multiple of kChunk
// up to kMostSegment.
Plan plan(std::span<const std::int64_t> cu_seqlens, const FragmentTable& table, std::int64_t segment);

// Whether every cut between two ranks' tokens or two fragments falls on a canonical boundary or between documents.
bool canonical(const Plan& plan);

}  // namespace deltagauge::kernels::cp
