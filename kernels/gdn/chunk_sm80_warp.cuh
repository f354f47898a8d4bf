// gdn.chunk_sm80: what one warp of the scan does with its 16 rows of the state (equations: chunk_sm80_scan.cuh). S [16, D]
// and what is as long as a chunk, [16, 64], are accumulators in registers; row r of a lane's are V rows group + 8 r.
#pragma once
#include <type_traits>

#include "kernels/device/convert.cuh"
#include "kernels/device/ptx/mma_m16n8k16.cuh"
#include "kernels/device/tile.cuh"
#include "kernels/device/tile_tf32.cuh"
#include "kernels/gdn/chunk_sm80.cuh"

namespace deltagauge::kernels::gdn::chunk_sm80 {

template <int kHeadSize, int kWarps, int kStages, bool kSplit>
struct ScanShape {
  static constexpr int D = kHeadSize, warps = kWarps, stages = kStages;  // K = V = D
  static constexpr bool split = kSplit;
};

// Accumulators of [16 V rows, 64 tokens]: n-blocks of 8 tokens.
using Rows64 = float[kC / 8][4];

// Factors of the rows group and group + 8.
struct RowScale {
  float down[2] = {1, 1}, up[2] = {1, 1};
};

template <class Io>
struct Warp {
  int lane = threadIdx.x % 32, group = lane / 4, t = lane % 4;

  // Powers of two that bring the largest of each row near 2^13, from this lane's largest; 1 for bf16, which needs none.
  static __device__ RowScale row_scale(const float (&largest)[2]) {
    RowScale scale;
    if constexpr (std::is_same_v<Io, __half>) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float x = largest[r];
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
        const int field = min(max(2 * 127 + 13 - static_cast<int>(__float_as_uint(x) >> 23), 1), 253);
        scale.down[r] = __uint_as_float(static_cast<unsigned>(field) << 23);
        scale.up[r] = __uint_as_float(static_cast<unsigned>(254 - field) << 23);
      }
    }
    return scale;
  }

  template <int kCount>
  static __device__ void largest_of(const float (&x)[kCount][4], float (&largest)[2]) {
    if constexpr (std::is_same_v<Io, __half>) {
#pragma unroll
      for (int n = 0; n < kCount; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) largest[e / 2] = fmaxf(largest[e / 2], fabsf(x[n][e]));
    }
  }

  // Two accumulators of 8 columns as operand a of 16, hi + lo.
  static __device__ void to_operand(const float (&x)[4], const float (&y)[4], const float (&scale)[2],
                                    std::uint32_t (&hi)[4], std::uint32_t (&lo)[4]) {
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const float(&from)[4] = r < 2 ? x : y;
      const int e = 2 * (r % 2);
      const SplitPair pair = split2<Io>(from[e] * scale[r % 2], from[e + 1] * scale[r % 2]);
      hi[r] = pair.hi;
      lo[r] = pair.lo;
    }
  }
};

// r += S K^T and o += S Q^T, with the rows of S scaled down.
template <class Io, class Shape>
__device__ void read_state(const float (&S)[Shape::D / 8][4], const RowScale& scale, std::uint32_t k, std::uint32_t q,
                           int lane, Rows64& r, Rows64& o) {
  constexpr int kD = Shape::D;
  const std::uint32_t columns = Tile<kD>::column_major(lane);
#pragma unroll
  for (int c = 0; c < kD / 16; ++c) {
    std::uint32_t hi[4], lo[4];
    Warp<Io>::to_operand(S[2 * c], S[2 * c + 1], scale.down, hi, lo);
#pragma unroll
    for (int i = 0; i < kBlocks; ++i) {
      std::uint32_t b[4];
      ptx::ldmatrix_x4(b, Tile<kD>::at(k + columns, 16 * i, 16 * c));
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        ptx::mma_m16n8k16<Io>(r[2 * i + n], hi, b[2 * n], b[2 * n + 1]);
        if constexpr (Shape::split) ptx::mma_m16n8k16<Io>(r[2 * i + n], lo, b[2 * n], b[2 * n + 1]);
      }
      ptx::ldmatrix_x4(b, Tile<kD>::at(q + columns, 16 * i, 16 * c));
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        ptx::mma_m16n8k16<Io>(o[2 * i + n], hi, b[2 * n], b[2 * n + 1]);
        if constexpr (Shape::split) ptx::mma_m16n8k16<Io>(o[2 * i + n], lo, b[2 * n], b[2 * n + 1]);
      }
    }
  }
}

// 0 where decay is: forgetting is exact, and 0 * inf would be NaN. kCount n-blocks from the first token of decay on.
template <int kCount>
__device__ void forget(float (*x)[4], const float* decay, int t) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const float2 d = *reinterpret_cast<const float2*>(&decay[8 * i + 2 * t]);
#pragma unroll
    for (int e = 0; e < 4; ++e)
      if ((e % 2 ? d.y : d.x) == 0.0f) x[i][e] = 0;
  }
}
// r = beta (v - exp(b) r) of n-blocks kFirst .. kFirst + kCount - 1, from S k^T of scaled rows. v_at: where this lane reads
// the warp's Columns16 (below) for ldmatrix; beta, decay_in: [64] of the chunk.
template <class Io, int kFirst, int kCount>
__device__ void residuals(Rows64& r, const RowScale& scale, std::uint32_t v_at, const float* beta, const float* decay_in,
                          int t) {
  if (decay_in[kC - 1] == 0.0f) forget<kCount>(r + kFirst, decay_in + 8 * kFirst, t);
#pragma unroll
  for (int i = kFirst; i < kFirst + kCount; i += 2) {
    std::uint32_t v[4];  // tokens 8 i .. and 8 i + 8 .., V rows 0 .. 7 and 8 .. 15 of each
    ptx::ldmatrix_x4_trans(v, v_at + 32 * 8 * i);
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const int token = 8 * (i + n) + 2 * t;
      const float2 b = *reinterpret_cast<const float2*>(&beta[token]);
      const float2 decay = *reinterpret_cast<const float2*>(&decay_in[token]);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float2 v2 = unpack2<Io>(v[2 * n + half]);
        float* r2 = &r[i + n][2 * half];
        r2[0] = b.x * fmaf(-(decay.x * scale.up[half]), r2[0], v2.x);
        r2[1] = b.y * fmaf(-(decay.y * scale.up[half]), r2[1], v2.y);
      }
    }
  }
}
// o = exp(b) o, from S q^T of scaled rows.
template <class Io>
__device__ void decay_reads(Rows64& o, const RowScale& scale, const float* decay_in, int t) {
  if (decay_in[kC - 1] == 0.0f) forget<kC / 8>(o, decay_in, t);
#pragma unroll
  for (int i = 0; i < kC / 8; ++i) {
    const float2 decay = *reinterpret_cast<const float2*>(&decay_in[8 * i + 2 * t]);
#pragma unroll
    for (int e = 0; e < 4; ++e) o[i][e] *= (e % 2 ? decay.y : decay.x) * scale.up[e / 2];
  }
}

// x times a factor a token.
__device__ inline void scale_tokens(Rows64& x, const float* factors, int t) {
#pragma unroll
  for (int i = 0; i < kC / 8; ++i) {
    const float2 f = *reinterpret_cast<const float2*>(&factors[8 * i + 2 * t]);
#pragma unroll
    for (int e = 0; e < 4; e += 2) {
      x[i][e] *= f.x;
      x[i][e + 1] *= f.y;
    }
  }
}

// d += x X^T for a lower triangular X.
template <bool kSplit>
__device__ void multiply_triangle(Rows64& d, const Rows64& x, const Triangle& X, int lane) {
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
    const OperandTf32<kSplit> a0(x[2 * j]), a1(x[2 * j + 1]);
#pragma unroll
    for (int i = j; i < kBlocks; ++i)
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const float4 b = X.at[lower(i, j)][n][lane];
        multiply_add(d[2 * i + n], a0, b.x, b.y);
        if (i > j || n > 0) multiply_add(d[2 * i + n], a1, b.z, b.w);  // else above the diagonal
      }
  }
}

// S times decay and the scale that u, which will be added to it as an operand in io, shares with it. unscale() ends it.
template <class Io, int kCount, int kTokens>
__device__ RowScale decay_state(float (&S)[kCount][4], const float (&u)[kTokens][4], float decay) {
  if (decay == 0.0f) {  // forgetting is exact: 0 * inf would be NaN
#pragma unroll
    for (int e = 0; e < 4 * kCount; ++e) S[e / 4][e % 4] = 0;
  }
  float largest[2] = {0, 0};
  Warp<Io>::largest_of(S, largest);
  Warp<Io>::largest_of(u, largest);
  const RowScale scale = Warp<Io>::row_scale(largest);
#pragma unroll
  for (int e = 0; e < 4 * kCount; ++e) S[e / 4][e % 4] *= decay * scale.down[e % 4 / 2];
  return scale;
}
template <class Io, int kCount>
__device__ void unscale(float (&S)[kCount][4], const RowScale& scale) {
  if constexpr (std::is_same_v<Io, __half>) {
#pragma unroll
    for (int e = 0; e < 4 * kCount; ++e) S[e / 4][e % 4] *= scale.up[e % 4 / 2];
  }
}

// S = decay S + u K for u [16, 64].
template <class Io, class Shape>
__device__ void write_state(float (&S)[Shape::D / 8][4], const Rows64& u, float decay, std::uint32_t k, int lane) {
  constexpr int kD = Shape::D;
  const RowScale scale = decay_state<Io>(S, u, decay);
  const std::uint32_t columns = k + Tile<kD>::row_major(lane);
  // Every hi before any lo: with subnormal f16 keys the tensor core aligns by the exponent field, on a grid coarser than
  // the lo sum, which the next hi would cut off (docs/numerics.md, "Tensor-core sums").
#pragma unroll
  for (int part = 0; part < (Shape::split ? 2 : 1); ++part) {
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) {
      std::uint32_t halves[2][4];
      Warp<Io>::to_operand(u[2 * j], u[2 * j + 1], scale.down, halves[0], halves[1]);
#pragma unroll
      for (int c = 0; c < kD / 16; ++c) {
        std::uint32_t b[4];
        ptx::ldmatrix_x4_trans(b, Tile<kD>::at(columns, 16 * j, 16 * c));
#pragma unroll
        for (int n = 0; n < 2; ++n) ptx::mma_m16n8k16<Io>(S[2 * c + n], halves[part], b[2 * n], b[2 * n + 1]);
      }
    }
  }
  unscale<Io>(S, scale);
}

// 16 V columns of 64 rows: 32 bytes a row, the two halves swapped in every other four rows (bank conflicts).
struct Columns16 {
  uint4 at[kC * 2];
  static __device__ constexpr int index(int row, int half) { return 2 * row + (half ^ ((row >> 2) & 1)); }
  // Where this lane reads for the transposed ldmatrix of rows 0 .. 15; 32 bytes a row further on.
  __device__ std::uint32_t address(int lane) const {
    const int matrix = lane / 8;
    return shared_address(&at[index((matrix >> 1) * 8 + lane % 8, matrix & 1)]);
  }
};

// A warp's 16 V columns of v, which points at the chunk's first row there; rows at and past valid are zeros and not read.
template <class Io>
__device__ void load_columns(Columns16& to, const Io* v, std::int64_t stride, int valid, int lane) {
  v += lane / 2 * stride + 8 * (lane % 2);
  const std::uint32_t address = shared_address(&to.at[Columns16::index(lane / 2, lane % 2)]);
#pragma unroll
  for (int i = 0; i < kC; i += 16, v += 16 * stride) {
    if (valid == kC)
      ptx::cp_async_16(address + 32 * i, v);
    else
      ptx::cp_async_16_or_zero(address + 32 * i, v, lane / 2 + i < valid);
  }
}

// [16, 64] scale * x to the rows of o, through the shared memory that held the warp's v.
template <class Io>
__device__ void store_o(const Rows64& x, float scale, Columns16& buffer, Io* o, std::int64_t stride, int valid) {
  const Warp<Io> l;
  auto* words = reinterpret_cast<std::uint32_t*>(buffer.at);
#pragma unroll
  for (int i = 0; i < kC / 8; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t pair = pack2<Io>(scale * x[i][2 * half], scale * x[i][2 * half + 1]);
      words[4 * Columns16::index(8 * i + l.group, half) + l.t] = ptx::movmatrix_trans(pair);
    }
  __syncwarp();  // the warp's o is there
#pragma unroll
  for (int i = 0; i < kC / 16; ++i) {
    const int row = 16 * i + l.lane / 2, half = l.lane % 2;
    if (row < valid) *reinterpret_cast<uint4*>(o + row * stride + 8 * half) = buffer.at[Columns16::index(row, half)];
  }
}

// What debugging sees of a warp's v_new [16, 8 kCount], by as_stored(value, row); to points at the chunk's first row.
template <int kCount, class AsStored>
__device__ void tap_rows(const float (&x)[kCount][4], AsStored as_stored, float* to, std::int64_t stride, int valid,
                         int group, int t) {
#pragma unroll
  for (int i = 0; i < kCount; ++i)
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int row = 8 * i + 2 * t + e % 2;
      if (row < valid) to[row * stride + group + 8 * (e / 2)] = as_stored(x[i][e], row);
    }
}

// Rows group and group + 8 of the warp's [16, D] of a state in memory; at points to its first element.
template <class Stored, int kCount>
__device__ void load_state(const Stored* at, float (&S)[kCount][4], int group, int t) {
#pragma unroll
  for (int n = 0; n < kCount; ++n)
#pragma unroll
    for (int e = 0; e < 4; e += 2) {
      const auto pair = *reinterpret_cast<const Pack<Stored, 2>*>(at + (group + 4 * e) * (8 * kCount) + 8 * n + 2 * t);
      S[n][e] = to_f32(pair.at[0]);
      S[n][e + 1] = to_f32(pair.at[1]);
    }
}
template <class Stored, int kCount>
__device__ void store_state(Stored* at, const float (&S)[kCount][4], int group, int t) {
#pragma unroll
  for (int n = 0; n < kCount; ++n)
#pragma unroll
    for (int e = 0; e < 4; e += 2)
      *reinterpret_cast<Pack<Stored, 2>*>(at + (group + 4 * e) * (8 * kCount) + 8 * n + 2 * t) = {
          from_f32<Stored>(S[n][e]), from_f32<Stored>(S[n][e + 1])};
}

}  // namespace deltagauge::kernels::gdn::chunk_sm80
