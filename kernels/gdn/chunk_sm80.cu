// gdn.chunk_sm80: workspace, and from the dtype and head size of a call to the instantiation that takes them.
#include "kernels/gdn/chunk_sm80.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace deltagauge::kernels::gdn {
namespace {

// [records | unit k | unit q], each part at a multiple of 256 bytes.
struct Workspace {
  std::size_t k_unit, q_unit, bytes;
  explicit Workspace(const Args& a) {
    const std::size_t unit = a.l2norm ? static_cast<std::size_t>(a.T * a.HK * a.K) * 2 : 0,
                      padded = (unit + 255) / 256 * 256;
    k_unit = static_cast<std::size_t>(chunk_sm80::slots(a) * a.HV) * sizeof(chunk_sm80::Record);
    q_unit = k_unit + padded;
    bytes = q_unit + padded;
  }
};

void launch(const Args& args, bool split, cudaStream_t stream) {
  const Workspace layout(args);
  char* base = static_cast<char*>(args.workspace);
  const chunk_sm80::Params params{.args = args,
                                  .records = reinterpret_cast<chunk_sm80::Record*>(base),
                                  .q_unit = args.l2norm ? base + layout.q_unit : nullptr,
                                  .k_unit = args.l2norm ? base + layout.k_unit : nullptr,
                                  .dense = args.cu_seqlens == nullptr ? args.T / args.N : 0,
                                  .split = split};
  const bool wide = args.K == 128;
  if (args.io == DType::bf16)
    return wide ? launch_chunk_sm80_as<__nv_bfloat16, 128>(params, stream)
                : launch_chunk_sm80_as<__nv_bfloat16, 64>(params, stream);
  wide ? launch_chunk_sm80_as<__half, 128>(params, stream) : launch_chunk_sm80_as<__half, 64>(params, stream);
}

}  // namespace

std::size_t chunk_sm80_workspace(const Args& args) { return Workspace(args).bytes; }
void launch_chunk_sm80(const Args& args, cudaStream_t stream) { launch(args, false, stream); }
void launch_chunk_sm80_split(const Args& args, cudaStream_t stream) { launch(args, true, stream); }

}  // namespace deltagauge::kernels::gdn
