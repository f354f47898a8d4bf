// From tensors that someone dumped from a model to a case: sizes, lengths and dtypes come from the tensors themselves.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/backend.h"
#include "core/problem.h"
#include "core/tensor.h"
#include "validate/safetensors.h"

namespace deltagauge::validate {

struct GivenCase {
  Case test;        // data=file: no seed gives these inputs
  Tensors inputs;   // as OpInfo::inputs(test.problem) names and shapes them
  Tensors outputs;  // o, and final_state when the file has it; empty when it has no o
};

// file: q k [T, HK, K], v [T, HV, V], optional g (default 0) and beta (default 1) [T, HV], initial_state [N, HV, V, K],
// in place of g raw_gate [T, HV], A_log (default: none, a = 1) and dt_bias (default 0) [HV], whose transform is said,
// cu_seqlens [N + 1] (i32 or i64), and outputs o [T, HV, V], final_state [N, HV, V, K]. With state_indices [N] (i32 or i64)
// and has_initial_state [N] (bool, default on) the states are pools [P, HV, V, K]. Token tensors may all have a batch in
// front: [B, T, ...] is B sequences of T tokens, or with cu_seqlens B must be 1. Without cu_seqlens [T, ...] is one
// sequence. Axes that tensors do not show (scale, l2norm, chunk) come from the file's "deltagauge.case", if any, then from
// settings (axis, text). Throws Error that names the tensor, expected and got: one missing, a wrong shape or dtype, values
// that are not finite on active rows, a gate above 0, beta outside [0, 2], a raw gate of no said transform; or that a
// setting contradicts the tensors.
GivenCase case_from_tensors(const Safetensors& file, std::string_view op,
                            std::span<const std::pair<std::string, std::string>> settings);

// The outputs of a file as a backend named "file", which rounds where `staging` does.
std::unique_ptr<Backend> file_backend(Tensors outputs, std::string staging);
std::string default_staging(DType io);  // for outputs of unknown origin

struct Statistics {
  std::int64_t count = 0, not_finite = 0;
  double least = 0, most = 0, mean = 0, rms = 0;  // of the finite values; 0 when there are none
};
Statistics statistics(const Tensor& tensor);

}  // namespace deltagauge::validate
