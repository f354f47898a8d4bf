// mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 (PTX ISA, "Matrix multiply-accumulate operation using mma").
#pragma once
#include <cstdint>

namespace deltagauge::kernels::ptx {

// d = a b + d on one warp. With group = lane / 4 and t = lane % 4: a holds (group, t) (group + 8, t) (group, t + 4)
// (group + 8, t + 4), b holds (t, group) (t + 4, group), d holds (group, 2 t) (group, 2 t + 1) and the same 8 rows below.
// The low 13 bits of each operand are ignored.
__device__ inline void mma_m16n8k8_tf32(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace deltagauge::kernels::ptx
