// Descriptors of tensors in device memory for the copies of the tensor memory accelerator (sm_90 and later).
#pragma once
#include <cuda.h>

#include <cstdint>

namespace deltagauge::kernels::runtime {

// Of a row-major [rows, heads, channels] tensor of 16-bit elements, from which boxes [box_rows, 1, box_channels] are copied
// to shared memory, where a row takes 2 * box_channels = 128 bytes in the 128-byte swizzle. base: a device pointer and 2 *
// channels, multiples of 16. All sizes from 1 to 2^31. Rows at and past `rows` are read as zeros and not written.
// Throws Error when the driver refuses or lacks it.
CUtensorMap rows_map(const char* what, const void* base, std::int64_t rows, std::int64_t heads, std::int64_t channels,
                     int box_rows, int box_channels);

}  // namespace deltagauge::kernels::runtime
