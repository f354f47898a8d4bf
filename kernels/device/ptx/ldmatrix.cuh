// ldmatrix, stmatrix and movmatrix (PTX ISA, "Warp-level matrix load instruction" and those after it): 8 x 8 matrices of
// 16-bit elements. In registers lane l holds row l / 4, columns 2 (l % 4) and the next one.
#pragma once
#include <cstdint>

namespace deltagauge::kernels::ptx {

// Four matrices. Lane l gives the shared-memory address (16-byte aligned) of row l % 8 of matrix l / 8.
__device__ inline void ldmatrix_x4(std::uint32_t (&d)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(address)
               : "memory");
}
// The same, each matrix transposed.
__device__ inline void ldmatrix_x4_trans(std::uint32_t (&d)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(address)
               : "memory");
}
// Four matrices, each transposed, to shared memory; addresses as for ldmatrix_x4. sm_90 and later.
__device__ inline void stmatrix_x4_trans(std::uint32_t address, const std::uint32_t (&d)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(d[0]), "r"(d[1]),
               "r"(d[2]), "r"(d[3])
               : "memory");
}
// The transpose of a matrix in registers.
__device__ inline std::uint32_t movmatrix_trans(std::uint32_t a) {
  std::uint32_t d;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d) : "r"(a));
  return d;
}

}  // namespace deltagauge::kernels::ptx
