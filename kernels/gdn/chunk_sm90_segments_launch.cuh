// gdn.chunk_sm90_segments: the launches for one io type and head size.
#pragma once
#include "kernels/gdn/chunk_sm90_launch.cuh"
#include "kernels/gdn/chunk_sm90_segments_map.cuh"

namespace deltagauge::kernels::gdn {
namespace chunk_sm90 {

inline constexpr char kSegmentsName[] = "gdn.chunk_sm90_segments";

template <class Io, class Shape>
void launch_maps(const Params& p, const Maps90& maps, const Segments& of, std::int64_t places, cudaStream_t stream) {
  runtime::launch_dependent<make_maps<Io, Shape>>(kSegmentsName, places * p.args.HV * 2 * Shape::splits, Shape::threads,
                                                  sizeof(MapSmem<Io, Shape>), stream, p, maps, of);
}

template <class Io, class Shape>
void launch_segments(const Params& p, const Maps90& maps, const Segments& of, std::int64_t places, cudaStream_t stream) {
  const std::int64_t blocks = (places + p.args.N) * p.args.HV * Shape::splits;
  constexpr std::size_t kShared = sizeof(Smem90<Io, Shape>);
  if (p.args.tap_S != nullptr || p.args.tap_v_new != nullptr)
    runtime::launch_dependent<segments<Io, Shape, true>>(kSegmentsName, blocks, Shape::threads, kShared, stream, p, maps,
                                                         of);
  else
    runtime::launch_dependent<segments<Io, Shape, false>>(kSegmentsName, blocks, Shape::threads, kShared, stream, p, maps,
                                                          of);
}

}  // namespace chunk_sm90

template <class Io, int kD>
void launch_chunk_sm90_segments_as(const chunk_sm80::Params& p, int shift, cudaStream_t stream) {
  using namespace chunk_sm90;
  const Args& a = p.args;
  const SegmentsWorkspace layout(a, shift);
  char* base = static_cast<char*>(a.workspace);
  const Segments of{reinterpret_cast<float*>(base + layout.bias), reinterpret_cast<float*>(base + layout.transition), shift};
  const Maps90 maps = maps_of(p);
  const std::int64_t sms = limits().sms, places = segment_places(a, shift);
  launch_prepare<Io, kD, Part::X>(p, sms, stream);
  // Rows of one state over several blocks, unless there are more of those than multiprocessors: rows of S never meet, so
  // the bits are the same.
  const bool wide_maps = kD == 128 && 2 * places * a.HV * (kD / 64) > sms;
  // P beside the maps, on the multiprocessors that those leave, a fifth at least: as measured. First segments have no A.
  const std::int64_t left = sms - (2 * places - 1) * a.HV * (wide_maps ? 1 : kD / 64);
  launch_prepare<Io, kD, Part::P>(p, left > sms / 5 ? left < sms ? left : sms : sms / 5 + 1, stream);
  if constexpr (kD == 128) {
    if (wide_maps) launch_maps<Io, MapShape<kD, 2>>(p, maps, of, places, stream);
  }
  if (!wide_maps) launch_maps<Io, MapShape<kD, 1>>(p, maps, of, places, stream);
  runtime::launch_dependent<fold_maps<kD>>(kSegmentsName, fold_places(a, shift) * a.HV * kFoldBlocks<kD>, kFoldGroups * kD,
                                           sizeof(FoldSmem<kD>), stream, p, of);
  launch_segments<Io, Shape90<kD>>(p, maps, of, places, stream);
}

}  // namespace deltagauge::kernels::gdn
