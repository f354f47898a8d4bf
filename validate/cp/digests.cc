// Cuts each rank's tensors into (segment, head) blocks and digests their bits.
#include "validate/cp/digests.h"

#include <algorithm>
#include <cstring>

#include "core/digest.h"

namespace deltagauge::validate::cp {
namespace {

// Rows [first, first + count) of dim 0 of head h. t: contiguous, [rows, HV, ...].
std::string digest_block(const Tensor& t, std::int64_t first, std::int64_t count, std::int64_t h) {
  if (t.empty()) return digest(std::span<const std::byte>());
  const std::size_t head = t.nbytes() / static_cast<std::size_t>(t.dim(0) * t.dim(1));
  std::vector<std::byte> bytes;
  for (std::int64_t row = first; row < first + count; ++row) {
    const std::byte* at = t.data() + static_cast<std::size_t>(row * t.dim(1) + h) * head;
    bytes.insert(bytes.end(), at, at + head);
  }
  return digest(bytes);
}

}  // namespace

std::string_view name(Stage stage) {
  constexpr std::string_view kNames[] = {"Ainv", "bias", "transition", "entry", "v_new", "o", "exit"};
  return kNames[static_cast<std::size_t>(stage)];
}

Digests digests_of(const kernels::cp::Plan& plan, const std::vector<RankAnswer>& ranks) {
  Digests digests;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const RankAnswer& answer = ranks[r];
    const Tensor *Ainv = find(answer.run, "Ainv"), *v_new = find(answer.run, "v_new");
    const std::int64_t HV = answer.entry.dim(1), V = answer.entry.dim(2), K = answer.entry.dim(3);
    std::int64_t chunk = 0;
    for (std::size_t i = 0; i < plan.ranks[r].segments.size(); ++i) {
      const kernels::cp::Segment& segment = plan.ranks[r].segments[i];
      const auto s = static_cast<std::int64_t>(i);
      const std::int64_t tokens = segment.end - segment.first,
                         chunks = (tokens + kernels::cp::kChunk - 1) / kernels::cp::kChunk;
      for (std::int64_t h = 0; h < HV; ++h) {
        const auto put = [&](Stage stage, std::string digest) {
          digests.insert_or_assign({segment.document, segment.canonical, stage, h}, std::move(digest));
        };
        const auto map_rows = [&](std::int64_t from, std::int64_t count) {
          const auto size = size_of(answer.summaries.dtype());
          const auto first = static_cast<std::size_t>(((s * HV + h) * (V + K) + from) * K) * size;
          return digest(std::span(answer.summaries.data() + first, static_cast<std::size_t>(count * K) * size));
        };
        if (Ainv) put(Stage::Ainv, digest_block(*Ainv, chunk, chunks, h));
        if (!segment.ends) put(Stage::bias, map_rows(0, V));
        if (!segment.ends) put(Stage::transition, map_rows(V, K));
        put(Stage::entry, digest_block(answer.entry, s, 1, h));
        if (v_new) put(Stage::v_new, digest_block(*v_new, segment.row, tokens, h));
        put(Stage::o, digest_block(get(answer.run, "o"), segment.row, tokens, h));
        put(Stage::exit, digest_block(get(answer.run, "final_state"), s, 1, h));
      }
      chunk += chunks;
    }
  }
  return digests;
}

std::optional<std::string> first_difference(const kernels::cp::Plan& plan, const Digests& got, const Digests& want) {
  std::optional<StagePlace> first;
  const auto note = [&](const Digests& a, const Digests& b) {
    for (const auto& [place, digest] : a) {
      const auto other = b.find(place);
      if (other != b.end() && other->second == digest) continue;
      if (!first || place < *first) first = place;
      return;
    }
  };
  note(got, want);
  note(want, got);
  if (!first) return {};
  const auto n = static_cast<std::size_t>(first->document);
  const std::int64_t begin = plan.cu_seqlens[n] + first->segment * plan.segment;
  const std::int64_t end = plan.segment ? std::min(begin + plan.segment, plan.cu_seqlens[n + 1]) : plan.cu_seqlens[n + 1];
  return "stage " + std::string(name(first->stage)) + " of head " + std::to_string(first->head) + " in segment " +
         std::to_string(first->segment) + " of document " + std::to_string(first->document) + " (tokens " +
         std::to_string(begin) + " .. " + std::to_string(end) + ")";
}

}  // namespace deltagauge::validate::cp
