// The recurrence, docs/math.md: one template for every linear op, value rows of S beside one another. Per token
//   D = S diag(alpha);  u = beta (v - D k) (delta write) or v (plain write);  S = D + u k^T;  o = scale S q
// Every value row is summed over k = 0 .. K-1 in order, whatever shares its registers, so a row's bits depend on nothing
// but its own inputs.
#pragma once
#include <cstdint>
#include <vector>

#include "oracle/real.h"

namespace deltagauge::oracle {

enum class Gate { none, scalar, channel };  // alpha: 1, one per token, one per token and key channel
enum class Write { plain, delta };
struct LinearOp {
  Gate gate;
  Write write;
};
inline constexpr LinearOp kGdn{Gate::scalar, Write::delta};

// A block of value rows: an entry of S^T, v, u or o for kRows rows.
template <class Real>
struct alignas(64) Rows {
  static constexpr int kLanes = Pack<Real>::kLanes, kPacks = Pack<Real>::kPerBlock, kRows = kLanes * kPacks;
  typename Pack<Real>::type pack[kPacks]{};
  Real get(int row) const { return Pack<Real>::get(pack[row / kLanes], row % kLanes); }
  void set(int row, const Real& x) { Pack<Real>::set(pack[row / kLanes], row % kLanes, x); }
};

// What all value rows of a head share over some consecutive tokens.
template <class Real>
struct Tile {
  std::int64_t tokens = 0, K = 0;
  std::vector<Real> q, k;   // [tokens, K]
  std::vector<Real> alpha;  // [tokens] (scalar), [tokens, K] (channel) or empty (none)
  std::vector<Real> beta;   // [tokens]; empty for a plain write
  Real scale{};
};

// Takes one block of value rows through the tile. S [K] in and out; v, u, o [tokens].
template <class Real, LinearOp kOp>
void advance(const Tile<Real>& tile, Rows<Real>* S, const Rows<Real>* v, Rows<Real>* u, Rows<Real>* o) {
  using P = Pack<Real>;
  using T = typename P::type;
  constexpr int kPacks = Rows<Real>::kPacks;
  const std::int64_t K = tile.K;
  const T scale = P::broadcast(tile.scale);
  for (std::int64_t t = 0; t < tile.tokens; ++t) {
    const Real *k = tile.k.data() + t * K, *q = tile.q.data() + t * K;
    Rows<Real> write = v[t];
    Dot<T> seen[kPacks], read[kPacks];  // D k, S q
    for (std::int64_t j = 0; j < K; ++j) {
      if constexpr (kOp.gate != Gate::none) {
        const T alpha = P::broadcast(tile.alpha[static_cast<std::size_t>(kOp.gate == Gate::scalar ? t : t * K + j)]);
        for (int i = 0; i < kPacks; ++i) S[j].pack[i] = alpha * S[j].pack[i];
      }
      if constexpr (kOp.write == Write::delta) {
        const T key = P::broadcast(k[j]);
        for (int i = 0; i < kPacks; ++i) seen[i].add(S[j].pack[i], key);
      }
    }
    if constexpr (kOp.write == Write::delta) {
      const T beta = P::broadcast(tile.beta[static_cast<std::size_t>(t)]);
      for (int i = 0; i < kPacks; ++i) write.pack[i] = beta * (write.pack[i] - seen[i].sum());
    }
    for (std::int64_t j = 0; j < K; ++j) {
      const T key = P::broadcast(k[j]), query = P::broadcast(q[j]);
      for (int i = 0; i < kPacks; ++i) {
        S[j].pack[i] = S[j].pack[i] + write.pack[i] * key;
        read[i].add(S[j].pack[i], query);
      }
    }
    u[t] = write;
    for (int i = 0; i < kPacks; ++i) o[t].pack[i] = scale * read[i].sum();
  }
}

}  // namespace deltagauge::oracle
