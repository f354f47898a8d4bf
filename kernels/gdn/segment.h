// Segments of gdn.chunk_sm90_segments: how many tokens, counted from the start of a sequence. Part of what is computed, as
// the chunk is: bits depend on it, and so it depends on nothing.
#pragma once
#include <bit>
#include <cstdint>

namespace deltagauge::kernels::gdn {

inline constexpr std::int64_t kSegment = 4096;
// Its log2, as the launch takes it. Only kernels/host changes it, for tests of many segments in few tokens.
inline int segment_shift = std::countr_zero(static_cast<std::uint64_t>(kSegment));

}  // namespace deltagauge::kernels::gdn
