#include "validate/peers.h"

#include <cmath>

namespace deltagauge::validate {
namespace {

// As read in the projects' test suites, August 2026; forward of gated delta rule or its nearest relative there.
constexpr Peer kPeers[] = {
    {"FLA", "rel-L2 0.005", {.005}, {.005}, {.005}, {.005}},
    {"FlashInfer",
     "atol/rtol 1e-2/1e-2 (bf16), 2e-3/1e-3 (f16)",
     {0, 1e-2, 1e-2},
     {0, 5e-3, 1e-3},
     {0, 2e-3, 1e-3},
     {0, 1e-3, 1e-4}},
    {"TileOPs", "atol = rtol = 1e-1 (bf16), 5e-2 (f16)", {0, 1e-1, 1e-1}, {0, 1e-1, 1e-1}, {0, 5e-2, 5e-2}, {0, 5e-2, 5e-2}},
    {"attention-gym", "atol = rtol = 2e-2", {0, 2e-2, 2e-2}, {0, 2e-2, 2e-2}, {0, 2e-2, 2e-2}, {0, 2e-2, 2e-2}},
    {"FlashQLA", "rel-L2 2 %", {.02}, {.02}, {.02}, {.02}},
};

}  // namespace

std::span<const Peer> peers() { return kPeers; }

bool rejects(const Peer& peer, DType io, std::string_view tensor, const Tensor& got, const Tensor& want, const Rows& rows) {
  const bool f16 = io == DType::f16;
  const Limit& limit = tensor == "o" ? (f16 ? peer.o_f16 : peer.o_bf16) : (f16 ? peer.state_f16 : peer.state_bf16);
  const auto a = to_f64(got), b = to_f64(want);
  double error = 0, norm = 0;
  bool apart = false;
  for (const Series& s : rows.series)
    for (std::int64_t i = 0; i < s.count; ++i) {
      const auto begin = static_cast<std::size_t>((s.first + i * s.stride) * rows.width);
      for (std::size_t j = begin; j < begin + static_cast<std::size_t>(rows.width); ++j) {
        const double e = std::abs(a[j] - b[j]);
        error += e * e;
        norm += b[j] * b[j];
        apart = apart || !(e <= limit.atol + limit.rtol * std::abs(b[j]));
      }
    }
  return limit.rel_l2 > 0 ? !(std::sqrt(error) <= limit.rel_l2 * std::sqrt(norm)) : apart;
}

}  // namespace deltagauge::validate
