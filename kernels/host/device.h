// What the shadow headers of kernels/host/shadow call: one thread's instructions. Each throws Error where the device would
// not define what happens.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace deltagauge::host {

[[noreturn]] void undefined(const char* what);
unsigned lane();
unsigned thread_index();

// Shared memory as 32-bit addresses from 0; a pointer outside the block's dynamic shared memory has none.
std::uint32_t shared_address(const void* p);
char* shared_pointer(std::uint32_t address, std::size_t bytes);

// Whole warps and blocks.
void sync_threads();
void sync_warp(unsigned mask);
unsigned ballot(unsigned mask, bool x);
std::uint64_t shuffle_bits(unsigned mask, std::uint64_t x, unsigned lane);
template <class T>
T shuffle(unsigned mask, T x, unsigned lane) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &x, sizeof x);
  bits = shuffle_bits(mask, bits, lane);
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}
void barrier_sync(int barrier, int threads);
void barrier_arrive(int barrier, int threads);

// mbarrier.
void mbarrier_init(std::uint64_t* word, std::uint32_t count);
void mbarrier_arrive(std::uint64_t* word, std::int64_t expected_bytes);
bool mbarrier_ended(std::uint64_t* word, std::uint32_t parity);
void mbarrier_wait(std::uint64_t* word, std::uint32_t parity);

// Copies.
void cp_async_16(std::uint32_t shared, const void* global, bool valid);
void cp_async_commit();
void cp_async_wait(int pending);
void bulk_load(void* shared, const void* global, std::uint32_t bytes, std::uint64_t* barrier);
void bulk_store(void* global, const void* shared, std::uint32_t bytes);
void bulk_store_wait_read(int pending);
void bulk_store_wait_done();
struct Box {  // of a tensor map: rows of 128 bytes
  char* base;
  std::uint64_t row_bytes;  // between rows in global memory
  int rows, valid;          // of the box; of the tensor, from the box's first on
};
void tensor_load(void* shared, const Box& box, std::uint64_t* barrier);
void tensor_store(const Box& box, const void* shared);

// Fences, flags and dependent launches.
void fence_async();  // fence.proxy.async, fence.mbarrier_init
void release(std::uint32_t* flag, std::uint32_t bits);
std::uint32_t acquire(const std::uint32_t* flag);
void wait_for_dependency();
void launch_dependents();

// Matrices of 8 x 8 16-bit elements.
void ldmatrix_x4(std::uint32_t (&d)[4], std::uint32_t address, bool transposed);
void stmatrix_x4_trans(std::uint32_t address, const std::uint32_t (&d)[4]);
std::uint32_t movmatrix_trans(std::uint32_t a);

// Products. Operands as the PTX wrappers have them.
enum class Format : std::uint8_t { bf16, f16, tf32 };
void mma(Format format, float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1);
struct Wgmma {
  Format format;
  int n;                   // columns
  float (*d)[4];           // [n / 8][4]
  const std::uint32_t* a;  // four registers
  std::uint64_t b;         // descriptor
  bool b_columns, add;     // rows of b's tile are k; d is added to
};
void wgmma(const Wgmma& product);
void wgmma_fence();
void wgmma_commit();
void wgmma_wait(int pending);

// How products of the formats are summed: c[m, n] += a[m, k] b[k, n], row-major. Plain f32 unless set.
using Matmul = void (*)(Format format, int m, int n, int k, const float* a, const float* b, float* c);
void set_matmul(Matmul matmul);

}  // namespace deltagauge::host
