// Staging: where a kernel rounds. A kernel names one; reference/ replays the same algorithm on the CPU, rounding at the
// same places, and what that loses against the oracle is the budget the kernel gets. One table, stagings().
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/problem.h"
#include "core/tensor.h"

namespace deltagauge::reference {

// How an intermediate is stored when it becomes an operand. io: the problem's io dtype. split: two io values, hi + lo.
enum class Store { f64, f32, tf32, io, split, f16, bf16 };
// How a sum of products is accumulated: exactly rounded steps in f32 (round to nearest), or as the tensor core does it.
enum class Accumulate { f64, f32, tensor_core };
// How (I + A)^-1 is formed.
enum class Solver { fs64, fs32, block16, doubling16_f16, doubling16_bf16, doubling_f32 };

struct Staging {
  std::string_view name;     // "chunk_sm80.plain"
  std::string_view summary;
  std::int64_t chunk;        // 0: token by token
  Store Ainv, P, S, resid, v_new, decay;  // P: masked and gated q k^T; resid: beta (v - decay S k); see reference/gdn.cc
  Accumulate accumulate;
  Solver solver;
};
std::span<const Staging> stagings();
const Staging& staging(std::string_view name);  // throws Error naming the known ones

// Forward of problem.op on the CPU with that staging. Returns the outputs in their own dtypes (o in io, final_state in
// state), and with taps also the intermediates it forms, as f32 or f64 (names and shapes as oracle::Answer::taps).
Tensors run(const Problem& problem, const Tensors& inputs, const Staging& staging, bool taps);

}  // namespace deltagauge::reference
