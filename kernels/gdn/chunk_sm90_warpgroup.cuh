// gdn.chunk_sm90: 64 V rows of the state through the chunks of a sequence, by a warpgroup on wgmma (equations:
// chunk_sm90.cuh). A warp keeps its [16, K] of S, and resid, v_new and o as [16, 64], in registers; each product's result
// is, register for register, the next one's operand a, and operand b is in shared memory. A chunk: S k^T; resid; resid X^T,
// then S q^T, while S decays; u k; v_new P^T while S becomes an operand again, and behind it the next chunk's S k^T.
#pragma once
#include "kernels/device/ptx/registers.cuh"
#include "kernels/gdn/chunk_sm90_factors.cuh"
#include "kernels/gdn/state_slot.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

inline constexpr int kGroup = 128;  // threads of a warpgroup

// The stage of a chunk and the parity of its phase, chunk after chunk.
template <int kStages>
struct Turn {
  int stage = 0;
  std::uint32_t parity = 0;
  __device__ void next() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

// What a block works on, in chunks of kTokens.
template <int kTokens>
struct WorkOf {
  std::int64_t n, h, hk, begin, end;
  int chunks, column;  // column: first V row of the block
  StateSlot slot;
  static constexpr int first = 0;  // as SegmentWork has them
  static constexpr const float* entry = nullptr;
  static constexpr bool waits = false;
  __device__ int valid(int chunk) const {
    const std::int64_t left = end - begin - std::int64_t{chunk} * kTokens;
    return static_cast<int>(left < kTokens ? left : kTokens);
  }
};
using Work = WorkOf<kC>;
// A segment of a sequence (chunk_sm90_segments.cuh).
struct SegmentWork : Work {
  int first;           // the chunk of the sequence that it starts with
  const float* entry;  // [V, K] that the head starts from, or null: as the sequence does
  // For the kernel ahead; before, the call's inputs alone are read, which the first of its kernels has waited for.
  static constexpr bool waits = true;
};
// Of pair n * HV + h; false when the sequence has no slot: then o of the block's V rows is zeroed and nothing is left to do.
template <class Io, int kTokens>
__device__ bool find_work(const Params& p, std::int64_t pair, int column, int columns, WorkOf<kTokens>& work) {
  const Args& a = p.args;
  const std::int64_t n = pair / a.HV, h = pair % a.HV;
  const Rows rows = rows_of(p, n);
  const StateSlot slot = state_slot(a, n, rows.begin == rows.end);
  if (slot.absent) {
    zero_output<Io>(a, h, rows, column, columns);
    return false;
  }
  work = {n,          h,        h / (a.HV / a.HK),
          rows.begin, rows.end, static_cast<int>((rows.end - rows.begin + kTokens - 1) / kTokens),
          column,     slot};
  return true;
}

// Where a warpgroup finds a chunk: v of its 64 V columns, tokens as rows in the 128-byte swizzle, where it leaves o. The
// chunk is there when the phase of full with this parity has ended. All lanes arrive at read when they need nothing of it
// but v's place any more, and at done when that is free too.
template <class Io, int kD>
struct ChunkAt {
  const Tokens90<Io, kD>&k, &q;
  const Factors90InShared& factors;
  const Vectors90& vectors;
  Io (&v)[kC * 64];
  ptx::Mbarrier &full, &read, &done;
  std::uint32_t parity;
};
// Where a lane's row of ldmatrix or stmatrix stands, of the first 8 tokens, V columns 16 w .. 16 w + 15.
template <class Io, int kSize>
__device__ std::uint32_t columns_at(const Io (&v)[kSize], int row, int w, int half) {
  return shared_address(v) + Tile<64>::offset(row, 2 * w + half);
}

// d = a X^T for the tiles X0 and X1 of a lower triangular X [64, 64], columns 0 .. 31, and rows and columns
// 32
// .. 63, and a [64, 64] in tf32; committed. The tensor core cuts a.
__device__ inline void multiply_triangle(Rows64& d, const Rows64& a, std::uint64_t X0, std::uint64_t X1) {
  constexpr int kSteps = kHalf / 8;
  auto &upper = reinterpret_cast<float(&)[kSteps][4]>(d[0]), &lower = reinterpret_cast<float(&)[kSteps][4]>(d[kSteps]);
#pragma unroll
  for (int step = 0; step < 3 * kSteps; ++step) {
    const float(&x)[4] = a[step < kSteps ? step : step - kSteps];
    const std::uint32_t operand[4] = {__float_as_uint(x[0]), __float_as_uint(x[2]), __float_as_uint(x[1]),
                                      __float_as_uint(x[3])};  // as OperandTf32
    const std::uint64_t tile = (step < kSteps ? X0 : step < 2 * kSteps ? X0 + kHalf * 128 / 16 : X1) + 2 * (step % kSteps);
    if (step < kSteps)
      ptx::wgmma_m64n32k8_tf32(upper, operand, tile, step > 0);
    else
      ptx::wgmma_m64n32k8_tf32(lower, operand, tile, step > kSteps);
  }
  ptx::wgmma_commit();
}

// The same at once, d += a P^T for P1 with 32 rows of zeros in front of it: where other products are under way, ptxas has no
// registers for the operands of the form above.
__device__ inline void add_triangle(Rows64& d, const Rows64& a, std::uint64_t P0, std::uint64_t zero_P1) {
#pragma unroll
  for (int step = 0; step < kC / 8; ++step) {
    const float(&x)[4] = a[step];
    const std::uint32_t operand[4] = {__float_as_uint(x[0]), __float_as_uint(x[2]), __float_as_uint(x[1]),
                                      __float_as_uint(x[3])};  // as OperandTf32
    ptx::wgmma_m64n64k8_tf32(d, operand, (step < kHalf / 8 ? P0 : zero_P1) + 2 * (step % (kHalf / 8)), true);
  }
  ptx::wgmma_commit();
}

// d = s x^T for keys x in tiles of 64 channels; committed.
template <class Io, int kD>
__device__ void multiply_state(Rows64& d, const std::uint32_t (&s)[kD / 16][4], std::uint64_t x) {
#pragma unroll
  for (int step = 0; step < kD / 16; ++step)
    ptx::wgmma_m64n64k16<Io>(d, s[step], x + step / 4 * (kTileBytes / 16) + 2 * (step % 4), step > 0);
  ptx::wgmma_commit();
}

// S += u k, for u [64, 16 kSteps] as operand a in io; committed.
template <class Io, int kD, int kSteps>
__device__ void add_to_state(float (&S)[kD / 8][4], const std::uint32_t (&u)[kSteps][4], std::uint64_t k) {
#pragma unroll
  for (int j = 0; j < kSteps; ++j) {
    if constexpr (kD == 128)
      ptx::wgmma_m64n128k16_columns<Io>(S, u[j], k + 128 * j);
    else
      ptx::wgmma_m64n64k16_columns<Io>(S, u[j], k + 128 * j);
  }
  ptx::wgmma_commit();
}

// [16, 8 kCount] as the warp's columns of o, tokens by V rows.
template <class Io, int kCount>
__device__ void write_o(const float (&x)[kCount][4], Io (&o)[8 * kCount * 64], int w, int lane) {
  const std::uint32_t to = columns_at(o, lane / 16 * 8 + lane % 8, w, lane / 8 % 2);
#pragma unroll
  for (int i = 0; i < kCount; i += 2) {
    std::uint32_t tokens[4];  // of 8 tokens, V rows 0 .. 7 and 8 .. 15, then of the next 8
#pragma unroll
    for (int m = 0; m < 4; ++m) tokens[m] = pack2<Io>(x[i + m / 2][2 * (m % 2)], x[i + m / 2][2 * (m % 2) + 1]);
    ptx::stmatrix_x4_trans(to + 128 * 8 * i, tokens);
  }
}
// The warp's columns of o's rows below valid to global memory, at is where the first element goes.
template <class Io, int kSize>
__device__ void store_rows(const Io (&o)[kSize], int w, Io* at, std::int64_t stride, int valid, int lane) {
  for (int row = lane / 2; row < valid; row += 16)
    *reinterpret_cast<uint4*>(at + row * stride + 8 * (lane % 2)) =
        *reinterpret_cast<const uint4*>(reinterpret_cast<const char*>(o) + Tile<64>::offset(row, 2 * w + lane % 2));
}
// A warpgroup's o of a full chunk on its way to global memory; elected: one thread of it.
template <class Io>
__device__ void send_o(const Maps90& maps, const Work& work, int index, int column, const Io (&o)[kC * 64], int barrier,
                       bool elected) {
  ptx::fence_async_shared();
  ptx::barrier_sync<kGroup>(barrier);  // o is there
  if (elected) ptx::tensor_store(maps.o, static_cast<int>(work.begin) + index * kC, static_cast<int>(work.h), column, o);
}

// What a lane needs for resid of a chunk.
template <int kTokens>
struct ResidInputs {
  std::uint32_t v[kTokens / 16][4];  // of two n-blocks of 8 tokens: V rows 0 .. 7 and 8 .. 15 of each
  float2 beta[kTokens / 8], decay[kTokens / 8];
  template <class Io>
  __device__ ResidInputs(const Io (&from)[kTokens * 64], const VectorsOf<kTokens>& vectors, int w, int lane) {
    const int t = lane % 4, matrix = lane / 8;
    const std::uint32_t at = columns_at(from, (matrix >> 1) * 8 + lane % 8, w, matrix & 1);
#pragma unroll
    for (int j = 0; j < kTokens / 16; ++j) ptx::ldmatrix_x4_trans(v[j], at + 128 * 16 * j);
#pragma unroll
    for (int i = 0; i < kTokens / 8; ++i) {
      beta[i] = *reinterpret_cast<const float2*>(&vectors.beta[8 * i + 2 * t]);
      decay[i] = *reinterpret_cast<const float2*>(&vectors.decay_in[8 * i + 2 * t]);
    }
  }
  // r = kTf32Up beta (v - exp(b) r), from S k^T of scaled rows.
  template <class Io>
  __device__ void resid(float (&r)[kTokens / 8][4], const RowScale& scale) const {
#pragma unroll
    for (int i = 0; i < kTokens / 8; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float2 v2 = unpack2<Io>(v[i / 2][2 * (i % 2) + half]);
        float* r2 = &r[i][2 * half];
        r2[0] = beta[i].x * fmaf(-(decay[i].x * scale.up[half]), r2[0], v2.x);
        r2[1] = beta[i].y * fmaf(-(decay[i].y * scale.up[half]), r2[1], v2.y);
      }
  }
};

// A warp's rows of the state, and the same as operand a under a scale by row (1 with bf16).
template <class Io, int kD>
struct State90 {
  float S[kD / 8][4] = {};
  std::uint32_t s[kD / 16][4];
  RowScale scale;

  __device__ void make_operand() {
    float largest[2] = {0, 0};
    Warp<Io>::largest_of(S, largest);
    scale = Warp<Io>::row_scale(largest);
    std::uint32_t lo[4];
#pragma unroll
    for (int c = 0; c < kD / 16; ++c) Warp<Io>::to_operand(S[2 * c], S[2 * c + 1], scale.down, s[c], lo);
  }
};

// Tiles of a chunk as wgmma takes them.
struct Tiles90 {
  std::uint64_t k, q, factors;
  template <class Io, int kD>
  explicit __device__ Tiles90(const ChunkAt<Io, kD>& at)
      : k(ptx::wgmma_rows(shared_address(&at.k))),
        q(ptx::wgmma_rows(shared_address(&at.q))),
        factors(ptx::wgmma_rows(shared_address(&at.factors))) {}
};

// Factors by token for a lane's two of each n-block.
using Pairs64 = float2[kC / 8];
template <int kCount>
__device__ void load_pairs(const float (&from)[8 * kCount], int t, float2 (&to)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) to[i] = *reinterpret_cast<const float2*>(&from[8 * i + 2 * t]);
}

// For debugging: v_new as the tensor core takes it, from v_new over |k_i| unless norms is null.
struct CutRow {
  const float* norms;
  __device__ float operator()(float x, int row) const {
    const float cut = __uint_as_float(__float_as_uint(x) & ~0x1fffu);
    return norms != nullptr ? cut / norms[row] : cut;
  }
};

// A warpgroup: V rows column .. column + 63 through all chunks. barrier: one of its own. at(turn) is where it finds the
// chunk of a turn. kTaps: for
// debugging, S before each chunk and v_new to where the arguments want them. No branch stands around products that are under
// way from one chunk to the next: ptxas would wait after every one.
template <class Io, int kD, int kStages, bool kTaps, class At, class W>
__device__ void run_state(const Params& p, const Maps90& maps, const W& work, int column, int barrier, At at) {
  constexpr bool kScaled = std::is_same_v<Io, __half>;
  constexpr std::uint64_t kX0 = 0, kX1 = offsetof(Factors90InShared, D1) / 16, kP0 = offsetof(Factors90InShared, P0) / 16,
                          kP1 = offsetof(Factors90InShared, zero_P1) / 16;
  const Args& a = p.args;
  const int thread = ptx::thread_id();
  const int lane = thread % 32, w = thread / 32 % 4, own = column + 16 * w;  // own: the warp's V rows
  const struct { int group, t; } l{lane / 4, lane % 4};
  const auto matrix = [&] { return work.slot.first + (work.h * kD + own) * kD; };  // of the state, its first element
  State90<Io, kD> state;
  if (work.entry != nullptr) {
    load_state(work.entry + own * kD, state.S, l.group, l.t);
  } else if (work.slot.read) {
    if (a.state == DType::f32)
      load_state(static_cast<const float*>(a.initial_state) + matrix(), state.S, l.group, l.t);
    else
      load_state(static_cast<const __nv_bfloat16*>(a.initial_state) + matrix(), state.S, l.group, l.t);
  }
  state.make_operand();
  const std::int64_t tap_block = kTaps && a.tap_S != nullptr ? chunks_before(p, work.n) + work.first : 0;

  const bool elected = thread % kGroup == 0;
  Turn<kStages> turn, last;
  Rows64 r, o;
  // Starts r = S k^T of the chunk of a turn; past the last one of what its stage held before.
  const auto read_keys = [&](int index, const Turn<kStages>& of) {
    const ChunkAt<Io, kD> chunk = at(of);
    const std::uint64_t k = Tiles90(chunk).k;
    if (index < work.chunks) chunk.full.wait(chunk.parity);
    ptx::wgmma_pin(r);
    ptx::wgmma_fence();
    multiply_state<Io, kD>(r, state.s, k);
  };

  // Once o of the chunk before this one has left shared memory. Sooner or later in the chunk: as measured.
  const auto release_last = [&](int index) {
    if (index == 0) return;
    if (elected) ptx::bulk_store_wait();
    at(last).done.arrive();
  };

  read_keys(0, turn);
  for (int index = 0; index < work.chunks; ++index) {
    const ChunkAt<Io, kD> chunk = at(turn);
    const Tiles90 tiles(chunk);
    const Vectors90& vectors = chunk.vectors;
    if constexpr (kTaps)
      if (a.tap_S != nullptr)
        store_state(a.tap_S + (((tap_block + index) * a.HV + work.h) * kD + own) * kD, state.S, l.group, l.t);
    const ResidInputs<kC> inputs(chunk.v, vectors, w, lane);
    const float first_decay = vectors.whole;
    ptx::wgmma_wait<0>();  // S k^T
    ptx::wgmma_pin(r);
    if (first_decay == 0.0f) forget<kC / 8>(r, vectors.decay_in, l.t);
    inputs.template resid<Io>(r, state.scale);

    Rows64 v_new;
    ptx::wgmma_pin(r);
    ptx::wgmma_pin(v_new);
    ptx::wgmma_fence();
    multiply_triangle(v_new, r, tiles.factors + kX0, tiles.factors + kX1);
    const float whole = const_cast<const volatile Vectors90&>(vectors).whole;  // not before the product
    Pairs64 decay;
    load_pairs(vectors.decay_out, l.t, decay);
    if constexpr (!kScaled) decay_state<Io>(state.S, r, whole);  // of r nothing is used
    if (index > 0) send_o(maps, work, index - 1, column, at(last).v, barrier, elected);
    ptx::wgmma_pin(o);
    ptx::wgmma_fence();
    multiply_state<Io, kD>(o, state.s, tiles.q);
    ptx::wgmma_wait<1>();  // v_new
    ptx::wgmma_pin(v_new);

    RowScale scale;
    std::uint32_t u[kC / 16][4], lo[4];
    {
      Rows64 decayed;
#pragma unroll
      for (int e = 0; e < 4 * (kC / 8); ++e)
        decayed[e / 4][e % 4] = v_new[e / 4][e % 4] * (e % 2 ? decay[e / 4].y : decay[e / 4].x);
      load_pairs(vectors.decay_read, l.t, decay);
      if constexpr (kScaled) scale = decay_state<Io>(state.S, decayed, whole);
#pragma unroll
      for (int j = 0; j < kC / 16; ++j) Warp<Io>::to_operand(decayed[2 * j], decayed[2 * j + 1], scale.down, u[j], lo);
    }
    ptx::wgmma_pin(state.S);
    ptx::wgmma_fence();
    add_to_state<Io, kD>(state.S, u, tiles.k + (std::uint64_t{(kTileBytes >> 4) - 1} << 16));  // wgmma_columns of k
#pragma unroll
    for (int e = 0; e < 4 * (kC / 8); ++e) v_new[e / 4][e % 4] *= kTf32Up;
    if constexpr (kTaps)
      if (a.tap_v_new != nullptr)
        tap_rows(v_new,
                 CutRow{a.l2norm ? records_of<Record90>(p)[(first_slot(work.begin, work.n) + index) * a.HV + work.h].k_norms
                                 : nullptr},
                 a.tap_v_new + ((work.begin + std::int64_t{index} * kC) * a.HV + work.h) * kD + own, a.HV * kD,
                 work.valid(index), l.group, l.t);
    ptx::wgmma_wait<1>();  // S q^T
    ptx::wgmma_pin(o);
    if (whole == 0.0f) forget<kC / 8>(o, vectors.decay_in, l.t);
#pragma unroll
    for (int e = 0; e < 4 * (kC / 8); ++e)
      o[e / 4][e % 4] *= (e % 2 ? decay[e / 4].y : decay[e / 4].x) * state.scale.up[e % 4 / 2];
    ptx::wgmma_pin(v_new);
    ptx::wgmma_pin(o);
    ptx::wgmma_fence();
    add_triangle(o, v_new, tiles.factors + kP0, tiles.factors + kP1);
    release_last(index);
    ptx::wgmma_wait<1>();  // S
    ptx::wgmma_pin(state.S);
    unscale<Io>(state.S, scale);
    state.make_operand();
    last = turn;
    turn.next();
    read_keys(index + 1, turn);
    ptx::wgmma_wait<1>();  // o
    ptx::wgmma_pin(o);
    chunk.read.arrive();
    write_o<Io>(o, chunk.v, w, lane);
  }
  ptx::wgmma_wait<0>();
  if (work.chunks > 0) {
    const int index = work.chunks - 1, valid = work.valid(index);
    if (valid == kC) {
      send_o(maps, work, index, column, at(last).v, barrier, elected);
      if (elected) ptx::bulk_store_wait();
    } else {         // the rest of the box belongs to others
      __syncwarp();  // o is there
      store_rows(at(last).v, w, static_cast<Io*>(a.o) + ((work.begin + std::int64_t{index} * kC) * a.HV + work.h) * kD + own,
                 a.HV * kD, valid, lane);
    }
  }
  if (!work.slot.write) return;
  if (a.state == DType::f32)
    store_state(static_cast<float*>(a.final_state) + matrix(), state.S, l.group, l.t);
  else
    store_state(static_cast<__nv_bfloat16*>(a.final_state) + matrix(), state.S, l.group, l.t);
}

}  // namespace deltagauge::kernels::gdn::chunk_sm90
