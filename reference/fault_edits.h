// What a planted fault changes around a correct staged run of gdn: its inputs and settings before, or its outputs after.
// Each is named after its row of faults.cc.
#pragma once
#include "core/problem.h"
#include "core/tensor.h"
#include "reference/staging.h"

namespace deltagauge::reference {

struct Call {  // a correct run, to be spoiled
  Problem problem;
  Tensors inputs;
  Staging staging;
};

void plain_gate(Call& c);  // g in place of a raw gate, for the faults that change g
void natural_gate_to_base_2(Call& c);
void gate_lags(Call& c);
void gate_of_head0(Call& c);
void no_initial_state(Call& c);
void transpose_initial_state(Call& c);
void scale_missing(Call& c);
void scale_twice(Call& c);
void beta_one_at_chunk_ends(Call& c);
void beta_bf16(Call& c);
void modulo_head_map(Call& c);
void eps_on_mean(Call& c);
void bias_missing(Call& c);  // this and the next two: of a raw gate
void A_log_linear(Call& c);
void other_transform(Call& c);
void sequence_leak(Call& c);
void state_f16(Call& c);
void doubling_f16(Call& c);
void doubling_bf16(Call& c);
void doubling_f32(Call& c);

void zero_row(const Problem& p, Tensors& out);
void zero_output(const Problem& p, Tensors& out);
void sign_flipped(const Problem& p, Tensors& out);
void value_tile_missing(const Problem& p, Tensors& out);
void transpose_final_state(const Problem& p, Tensors& out);
void final_state_slot(const Problem& p, Tensors& out);

}  // namespace deltagauge::reference
