// gdn.chunk_sm90: the two launches for one io type and head size.
#pragma once
#include <limits>

#include "kernels/gdn/chunk_sm80_launch.cuh"
#include "kernels/gdn/chunk_sm90_prepare.cuh"
#include "kernels/gdn/chunk_sm90_state.cuh"
#include "kernels/runtime/launch.cuh"
#include "kernels/runtime/tensor_map.cuh"

namespace deltagauge::kernels::gdn {
namespace chunk_sm90 {

// For chunks of so many tokens.
inline Maps90 maps_of(const Params& p, int tokens = kC) {
  const Args& a = p.args;
  if (a.T == 0) return {};
  const auto map = [&](const void* base, std::int64_t heads) {
    return runtime::rows_map("gdn.chunk_sm90", base, a.T, heads, a.K, tokens, 64);
  };
  return {.k = map(a.k, a.HK),
          .q = map(a.q, a.HK),
          .v = map(a.v, a.HV),
          .o = map(a.o, a.HV),
          .k_scaled = map(p.k_unit ? p.k_unit : a.k, a.HK),
          .q_scaled = map(p.q_unit ? p.q_unit : a.q, a.HK)};
}

// On so many multiprocessors at most. P alone goes behind X.
template <class Io, int kD, Part kPart>
void launch_prepare(const Params& p, std::int64_t most, cudaStream_t stream) {
  constexpr char kWhat[] = "gdn.chunk_sm90 prepare";
  constexpr int kTeams = Team<kPart>::count, kThreads = kTeams * Team<kPart>::threads;
  constexpr std::size_t kShared = kTeams * sizeof(PrepareSmem90<Io, kD, kPart>);
  const std::int64_t items = p.slots * p.args.HK, wanted = (items + kTeams - 1) / kTeams,
                     blocks = wanted < most ? wanted : most;
  if (items > std::numeric_limits<std::int32_t>::max())
    fail(kWhat, ": expected at most ", std::numeric_limits<std::int32_t>::max(), " chunks of key heads, got ", items);
  if constexpr (kPart == Part::P)
    p.args.l2norm ? runtime::launch_dependent<prepare<Io, kD, kPart, true>>(kWhat, blocks, kThreads, kShared, stream, p)
                  : runtime::launch_dependent<prepare<Io, kD, kPart, false>>(kWhat, blocks, kThreads, kShared, stream, p);
  else
    runtime::launch(kWhat, p.args.l2norm ? prepare<Io, kD, kPart, true> : prepare<Io, kD, kPart, false>, blocks, kThreads,
                    kShared, stream, p);
}

template <class Io, class Shape>
void launch_states(const Params& p, cudaStream_t stream) {
  constexpr char kWhat[] = "gdn.chunk_sm90 states";
  const std::int64_t blocks = p.args.N * p.args.HV * Shape::splits;
  constexpr std::size_t kShared = sizeof(Smem90<Io, Shape>);
  if (p.args.tap_S != nullptr || p.args.tap_v_new != nullptr)
    runtime::launch_dependent<states<Io, Shape, true>>(kWhat, blocks, Shape::threads, kShared, stream, p, maps_of(p));
  else
    runtime::launch_dependent<states<Io, Shape, false>>(kWhat, blocks, Shape::threads, kShared, stream, p, maps_of(p));
}

}  // namespace chunk_sm90

template <class Io, int kD>
void launch_chunk_sm90_as(const chunk_sm80::Params& p, cudaStream_t stream) {
  using namespace chunk_sm90;
  // Where the states, 64 V rows a block, leave at least half of the multiprocessors idle, both kernels run side by side.
  const std::int64_t blocks = p.args.N * p.args.HV * (kD / 64), sms = limits().sms;
  launch_prepare<Io, kD, Part::all>(p, 2 * blocks <= sms ? sms - blocks : sms, stream);
  launch_states<Io, Shape90<kD>>(p, stream);
}

}  // namespace deltagauge::kernels::gdn
