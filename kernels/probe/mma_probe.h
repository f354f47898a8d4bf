// What the tensor core computes: one mma.sync a vector, d = c + sum a[i] b[i] accumulated in f32, so that a model of it can
// be held against the hardware bit for bit.
#pragma once
#include <cstdint>

namespace deltagauge::kernels::probe {

// m16n8k16 for bf16 and f16, m16n8k8 for tf32.
enum class MmaKind { bf16, f16, tf32 };
constexpr std::int64_t mma_length(MmaKind kind) { return kind == MmaKind::tf32 ? 8 : 16; }

// a, b [count, mma_length(kind)], c, d [count]; host memory. Elements of a and b are values of the kind's format (tf32: any
// f32, handed over as it is). Copies, runs and waits; throws Error without a GPU.
void mma(MmaKind kind, const float* a, const float* b, const float* c, float* d, std::int64_t count);

}  // namespace deltagauge::kernels::probe
