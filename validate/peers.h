// Peers: the fixed tolerances that other projects' tests use for these kernels, as facts, so that the selftest can print
// what each of them would have caught. Never used for a verdict.
#pragma once
#include <span>
#include <string_view>

#include "core/tensor.h"
#include "validate/rows.h"

namespace deltagauge::validate {

struct Limit {
  double rel_l2 = 0;          // rms error over rms; 0: not used
  double atol = 0, rtol = 0;  // |got - want| <= atol + rtol |want| for every element; both 0: not used
};

struct Peer {
  std::string_view name, criterion;
  Limit o_bf16, state_bf16, o_f16, state_f16;
};
std::span<const Peer> peers();

// Whether the peer's criterion would reject this o or final_state of a call with the given io dtype.
bool rejects(const Peer& peer, DType io, std::string_view tensor, const Tensor& got, const Tensor& want, const Rows& rows);

}  // namespace deltagauge::validate
