// One token a sequence through gdn with what stands before it, on a state pool (docs/math.md#gdn_decode). Plain C++: no CUDA
// header is needed to call it.
//   q, k normalised;  g = -exp(A_log) softplus(raw_gate + dt_bias);  beta = sigmoid(raw_beta), or twice that
//   D = exp(g) S;  u = beta (v - D k);  S' = D + u k^T;  o = scale S' q
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/dtype.h"

namespace deltagauge::kernels::gdn_decode {

// Device pointers. Row b of every tensor is sequence b; rows from B on are neither read nor written.
struct Args {
  const void* packed_qkv = nullptr;             // [B, 2 HK K + HV V] io: q heads, k heads, v heads
  const void* raw_gate = nullptr;               // [B, HV] gate_dtype
  const void* raw_beta = nullptr;               // [B, HV] beta_dtype
  const float* A_log = nullptr;                 // [HV]
  const float* dt_bias = nullptr;               // [HV]
  void* pool = nullptr;                         // [slots, HV, V, K] state; slots slot_stride elements apart
  const std::int32_t* state_indices = nullptr;  // [B] below slots; positive ones unique; not positive: o is 0, nothing else
  const std::uint8_t* has_initial_state = nullptr;  // [B]; 0: start from zero, the slot is not read; null: all are read
  void* o = nullptr;  // [B, HV, V] io, the caller's, no part of an input; what passes io's largest value is infinity
  std::int64_t B = 0, HK = 0, HV = 0, K = 0, V = 0;
  std::int64_t slots = 0, slot_stride = 0;  // slot_stride: at least HV V K elements
  DType io = DType::bf16, state = DType::f32, gate_dtype = DType::f32, beta_dtype = DType::f32;
  float scale = 0;          // of q, as applied (no default here)
  bool neg_eigval = false;  // beta = 2 sigmoid(raw_beta)
  bool fast_math = false;
};

// Why args cannot be run (expected and got), or nothing. Looks at sizes and dtypes only.
std::optional<std::string> unsupported(const Args& args);
// Throws Error with expected and got; never allocates or synchronises. The values on the device are not looked at: an index
// of slots or more is the caller's fault.
void fwd(const Args& args, void* stream);

}  // namespace deltagauge::kernels::gdn_decode
