// The table of planted faults. Most are a change to what goes in or comes out of a correct run; the rest are slips inside
// the staged algorithm (gdn.h).
#include "reference/faults.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/error.h"
#include "reference/fault_edits.h"
#include "reference/gdn.h"
#include "reference/gdn_decode.h"

namespace deltagauge::reference {
namespace {

// --- when a fault must show ------------------------------------------------------------------------------------------
std::int64_t longest(const Problem& p) {
  return p.lengths.empty() ? 0 : *std::max_element(p.lengths.begin(), p.lengths.end());
}
bool random(const Problem& p) { return p.data.kind != "lattice"; }
bool state_out(const Problem& p) { return p.final_state == Switch::on; }
// One direction (or two) for all keys: each write erases what stood there, so older faults fade at once.
bool overwrites(const Problem& p) {
  const std::string& keys = p.keys.kind;
  return random(p) && (keys == "repeated" || keys == "alternating" || keys == "two-interleaved" ||
                       (keys == "rho" && p.keys.value > 0.95));
}
// Gates differ from 0, and leave something of the state a few tokens later.
bool gated(const Problem& p) {
  return random(p) && !overwrites(p) && p.gate.kind != "none" &&
         !(p.gate.kind == "constant" && (p.gate.value > -0.01 || p.gate.value < -3));
}
bool strongly_gated(const Problem& p) {
  return gated(p) &&
         (p.gate.kind == "strong" || p.gate.kind == "model" || (p.gate.kind == "constant" && p.gate.value < -0.5));
}
bool remembers(const Problem& p) { return !overwrites(p) && !(p.gate.kind == "constant" && p.gate.value < -3); }
bool writes(const Problem& p) { return longest(p) > 0 && !(random(p) && p.beta.kind == "const" && p.beta.value == 0); }
bool raw(const Problem& p) { return p.raw_gate == Switch::on && gated(p) && writes(p) && longest(p) > 2; }
bool long_enough(const Problem& p) { return writes(p) && longest(p) > p.chunk; }
bool seeded(const Problem& p) { return longest(p) > 0 && p.h0.kind == "normal" && p.h0.value >= 0.5 && remembers(p); }
bool two_sequences(const Problem& p) {
  return std::count_if(p.lengths.begin(), p.lengths.end(), [](std::int64_t n) { return n > 0; }) > 1;
}
bool short_tail(const Problem& p) {
  return std::any_of(p.lengths.begin(), p.lengths.end(), [&](std::int64_t n) { return n % p.chunk != 0; });
}
bool tail_before_tokens(const Problem& p) {  // a short chunk with rows of another sequence behind it
  std::int64_t row = 0;
  for (std::int64_t length : p.lengths) {
    row += length;
    if (length % p.chunk != 0 && row < p.tokens()) return true;
  }
  return false;
}
bool beta_between(const Problem& p) {  // away from 0 and 1 at most tokens
  return random(p) && p.beta.kind != "near1" && (p.beta.kind != "const" || (p.beta.value > 0 && p.beta.value < 0.9));
}
bool collinear(const Problem& p) {
  const bool keys =
      p.keys.kind == "repeated" || p.keys.kind == "alternating" || (p.keys.kind == "rho" && p.keys.value >= 0.99);
  const bool beta = p.beta.kind == "near1" || (p.beta.kind == "const" && p.beta.value >= 0.8 && p.beta.value < 1);
  const bool weak = p.gate.kind == "none" || p.gate.kind == "mild" || (p.gate.kind == "constant" && p.gate.value >= -0.01);
  return random(p) && keys && beta && weak && p.kscale == 1;
}

// --- the table -------------------------------------------------------------------------------------------------------
struct Row {
  Fault fault;
  Slip slip = Slip::none;
  void (*before)(Call&) = nullptr;
  void (*after)(const Problem&, Tensors&) = nullptr;
};

const Row kRows[] = {
    {{"state_dropped", "the state is zeroed before the second chunk of one head", "more than one chunk",
      [](const Problem& p) { return long_enough(p) && remembers(p); }},
     Slip::state_dropped},
    {{"end_gate_off_by_one", "the last token's gate is missing from the decays to the chunk's end",
      "gates; a final state or more than one chunk",
      [](const Problem& p) { return gated(p) && writes(p) && (long_enough(p) || state_out(p)); }},
     Slip::end_gate_off_by_one},
    {{"end_gate_of_padding", "the decay at a short chunk's end is read from its last, empty slot",
      "gates, a short chunk, a final state",
      [](const Problem& p) { return gated(p) && writes(p) && short_tail(p) && state_out(p); }},
     Slip::end_gate_of_padding},
    {{"exp2_for_exp", "2^x where exp(x) is right", "gates; a second token or an initial state",
      [](const Problem& p) { return gated(p) && writes(p) && (longest(p) > 1 || seeded(p)); }},
     Slip::none,
     natural_gate_to_base_2},
    {{"gate_lags", "token t decays by the gate of token t - 1", "gates that differ from token to token",
      [](const Problem& p) { return gated(p) && writes(p) && p.gate.kind != "constant" && longest(p) > 2; }},
     Slip::none,
     gate_lags},
    {{"gate_of_head0", "every head decays by head 0's gate", "gates, more than one value head",
      [](const Problem& p) { return gated(p) && writes(p) && p.gate.kind != "constant" && p.HV > 1 && longest(p) > 2; }},
     Slip::none,
     gate_of_head0},
    {{"decay_clamped", "the cumulative decay is held at 1e-10 or above", "strong gates over a whole chunk",
      [](const Problem& p) { return strongly_gated(p) && p.gate.kind != "model" && longest(p) >= 64 && p.chunk >= 64; }},
     Slip::decay_clamped},
    {{"cumsum_bf16", "the running sum of gates is kept in bf16", "strong gates",
      [](const Problem& p) { return strongly_gated(p) && p.gate.kind != "constant" && longest(p) >= 64 && p.chunk >= 64; }},
     Slip::cumsum_bf16},
    {{"cumsum_not_reset", "the running sum of gates goes on over chunk boundaries", "gates, more than one chunk",
      [](const Problem& p) { return gated(p) && long_enough(p); }},
     Slip::cumsum_not_reset},
    {{"error_before_decay", "the error is taken against the state before its decay",
      "gates; a second token or an initial state",
      [](const Problem& p) { return gated(p) && writes(p) && (longest(p) > 1 || seeded(p)); }},
     Slip::error_before_decay},
    {{"inter_not_decayed", "o reads the state of the chunk's start undecayed",
      "gates; an initial state or more than one chunk",
      [](const Problem& p) { return gated(p) && (seeded(p) || long_enough(p)); }},
     Slip::inter_not_decayed},
    {{"read_after_update", "o reads the state of the chunk's end", "any write",
      [](const Problem& p) { return writes(p) && remembers(p); }},
     Slip::read_after_update},
    {{"v_new_not_decayed", "v_new enters the state undecayed", "gates; a final state or more than one chunk",
      [](const Problem& p) { return gated(p) && writes(p) && longest(p) > 1 && (long_enough(p) || state_out(p)); }},
     Slip::v_new_not_decayed},
    {{"last_token_twice", "the last token is written to the state twice", "a final state",
      [](const Problem& p) { return writes(p) && state_out(p); }},
     Slip::last_token_twice},
    {{"P_without_diagonal", "a token does not see its own write", "any write", [](const Problem& p) { return writes(p); }},
     Slip::P_without_diagonal},
    {{"P_sees_next", "a token sees the next token's write", "a second token",
      [](const Problem& p) { return writes(p) && longest(p) > 1; }},
     Slip::P_sees_next},
    {{"Ainv_row_shifted", "the strictly lower part of Ainv is off by one row", "a second token",
      [](const Problem& p) { return writes(p) && longest(p) > 1 && remembers(p); }},
     Slip::Ainv_row_shifted},
    {{"tail_reads_next", "a short chunk takes in the next sequence's first rows",
      "a short chunk before another sequence, a final state",
      [](const Problem& p) { return tail_before_tokens(p) && state_out(p) && writes(p); }},
     Slip::tail_reads_next},
    {{"h0_ignored", "the initial state is taken as zero", "an initial state", [](const Problem& p) { return seeded(p); }},
     Slip::none,
     no_initial_state},
    {{"h0_transposed", "the initial state is read as [K, V]", "an initial state, K = V",
      [](const Problem& p) { return seeded(p) && p.K == p.V; }},
     Slip::none,
     transpose_initial_state},
    {{"final_state_transposed", "the final state is written as [K, V]", "a final state, K = V",
      [](const Problem& p) { return writes(p) && state_out(p) && p.K == p.V; }},
     Slip::none,
     nullptr,
     transpose_final_state},
    {{"final_state_slot", "final states land one sequence too far", "two sequences, a final state",
      [](const Problem& p) { return writes(p) && two_sequences(p) && state_out(p); }},
     Slip::none,
     nullptr,
     final_state_slot},
    {{"sequence_leak", "the second sequence starts from the first's final state", "two sequences",
      [](const Problem& p) { return writes(p) && two_sequences(p) && remembers(p); }},
     Slip::none,
     sequence_leak},
    {{"state_f16", "the state is an f16 operand where io is bf16", "bf16, an initial state past 65504",
      [](const Problem& p) { return p.io == DType::bf16 && random(p) && seeded(p) && p.h0.value >= 1e5; }},
     Slip::none,
     state_f16},
    {{"head_map_modulo", "value head h reads key head h mod HK", "HV > HK > 1",
      [](const Problem& p) { return writes(p) && p.HV > p.HK && p.HK > 1; }},
     Slip::none,
     modulo_head_map},
    {{"scale_missing", "the scale of q is not applied", "a scale other than 1",
      [](const Problem& p) { return writes(p) && p.q_scale() != 1; }},
     Slip::none,
     scale_missing},
    {{"scale_twice", "the scale of q is applied twice", "a scale other than 1",
      [](const Problem& p) { return writes(p) && p.q_scale() != 1; }},
     Slip::none,
     scale_twice},
    {{"beta_one_at_chunk_ends", "beta is 1 at the last token of every full chunk", "a full chunk, beta away from 1",
      [](const Problem& p) { return beta_between(p) && writes(p) && longest(p) >= p.chunk; }},
     Slip::none,
     beta_one_at_chunk_ends},
    {{"beta_bf16", "beta is rounded to bf16", "f16 or f32 io, beta in f32",
      [](const Problem& p) {
        return p.io != DType::bf16 && p.beta_dtype == DType::f32 && beta_between(p) && p.beta.kind != "const" && writes(p);
      }},
     Slip::none,
     beta_bf16},
    {{"l2norm_eps_on_mean", "eps is added to the mean of squares, not to their sum", "l2norm on, small keys",
      [](const Problem& p) { return p.l2norm == Switch::on && p.kscale <= 0.004 && random(p) && writes(p); }},
     Slip::none,
     eps_on_mean},
    {{"raw_gate_bias_missing", "dt_bias is not added to a raw gate", "raw_gate on, gates of a model",
      [](const Problem& p) { return raw(p) && p.gate.kind == "model"; }},
     Slip::none,
     bias_missing},
    {{"raw_gate_A_log_linear", "A_log is taken for exp(A_log)", "raw_gate on, an A_log",
      [](const Problem& p) { return raw(p) && p.a_log == Switch::on && p.transform == "softplus"; }},
     Slip::none,
     A_log_linear},
    {{"raw_gate_other_transform", "the bounded gate in place of the softplus, or the other way round", "raw_gate on", raw},
     Slip::none,
     other_transform},
    {{"doubling_f16", "16-row inverses by doubling in f16", "keys that repeat, beta near 1, weak gates",
      [](const Problem& p) { return collinear(p) && longest(p) >= 16; }},
     Slip::none,
     doubling_f16},
    {{"doubling_bf16", "16-row inverses by doubling in bf16", "keys that repeat, beta near 1, weak gates",
      [](const Problem& p) { return collinear(p) && longest(p) >= 16; }},
     Slip::none,
     doubling_bf16},
    {{"doubling_f32", "a whole chunk's inverse by doubling in f32", "keys that repeat, beta near 1, weak gates",
      [](const Problem& p) { return collinear(p) && longest(p) >= 64 && p.chunk >= 64; }},
     Slip::none,
     doubling_f32},
    {{"zero_row", "one row of o is zero", "any write", [](const Problem& p) { return writes(p); }},
     Slip::none,
     nullptr,
     zero_row},
    {{"zero_output", "o is zero", "any write", [](const Problem& p) { return writes(p); }},
     Slip::none,
     nullptr,
     zero_output},
    {{"sign_flipped", "one element of o has the wrong sign", "any write",
      [](const Problem& p) { return writes(p) && !overwrites(p); }},
     Slip::none,
     nullptr,
     sign_flipped},
    {{"value_tile_missing", "the last 8 value columns of one row are zero", "any write",
      [](const Problem& p) { return writes(p); }},
     Slip::none,
     nullptr,
     value_tile_missing},
};

// --- gdn_decode ------------------------------------------------------------------------------------------------------
bool always(const Problem&) { return true; }
template <class Which>
bool any_sequence(const Problem& p, Which which) {  // which(has a slot, has_initial_state)
  const auto slots = p.state_indices();
  const auto has = p.has_initial_state();
  for (std::size_t n = 0; n < slots.size(); ++n)
    if (which(slots[n] > 0, has[n])) return true;
  return false;
}
bool reads_state(const Problem& p) {
  return p.h0.kind == "normal" && any_sequence(p, [](bool slot, bool has) { return slot && has; });
}
bool decays_state(const Problem& p) { return reads_state(p) && p.gate.kind != "none"; }

struct DecodeRow {
  Fault fault;
  DecodeSlip slip;
};
const DecodeRow kDecodeRows[] = {
    {{"decode.eps_on_mean", "eps is added to the mean of squares of q and k", "small keys",
      [](const Problem& p) { return p.kscale <= 0.004; }},
     DecodeSlip::eps_on_mean},
    {{"decode.query_raw", "q is not normalised", "any slot", always}, DecodeSlip::query_raw},
    {{"decode.beta_bf16", "the sigmoid of raw_beta is rounded to bf16", "beta away from 0 and 1", beta_between},
     DecodeSlip::beta_bf16},
    {{"decode.beta_raw", "raw_beta is taken for beta", "any slot", always}, DecodeSlip::beta_raw},
    {{"decode.gate_bounded", "the bounded gate in place of the softplus", "gates, a state", decays_state},
     DecodeSlip::gate_bounded},
    {{"decode.gate_of_head0", "every head decays by head 0's gate", "gates, a state, HV > 1",
      [](const Problem& p) { return decays_state(p) && p.HV > 1 && p.gate.kind != "constant"; }},
     DecodeSlip::gate_of_head0},
    {{"decode.A_log_linear", "A_log is taken for exp(A_log)", "gates, a state", decays_state}, DecodeSlip::A_log_linear},
    {{"decode.dt_bias_missing", "dt_bias is not added", "gates of a model, a state",
      [](const Problem& p) { return reads_state(p) && p.gate.kind == "model"; }},
     DecodeSlip::dt_bias_missing},
    {{"decode.exp2_for_exp", "2^g where exp(g) is right", "gates, a state", decays_state}, DecodeSlip::exp2_for_exp},
    {{"decode.error_before_decay", "the error is taken against the state before its decay", "gates, a state", decays_state},
     DecodeSlip::error_before_decay},
    {{"decode.read_before_write", "o does not see the token's own write", "any slot", always},
     DecodeSlip::read_before_write},
    {{"decode.head_map_modulo", "value head h reads key head h mod HK", "HV > HK > 1",
      [](const Problem& p) { return p.HV > p.HK && p.HK > 1; }},
     DecodeSlip::head_map_modulo},
    {{"decode.scale_missing", "the scale of q is not applied", "a scale other than 1",
      [](const Problem& p) { return p.q_scale() != 1; }},
     DecodeSlip::scale_missing},
    {{"decode.neg_eigval_ignored", "beta is not doubled", "neg_eigval=on",
      [](const Problem& p) { return p.neg_eigval == Switch::on; }},
     DecodeSlip::neg_eigval_ignored},
    {{"decode.slot_of_next", "a sequence starts from the next sequence's state", "two sequences, a state",
      [](const Problem& p) { return reads_state(p) && p.sequences() > 1; }},
     DecodeSlip::slot_of_next},
    {{"decode.state_ignored", "the state is taken as zero", "a state", reads_state}, DecodeSlip::state_ignored},
    {{"decode.flag_ignored", "a slot is read although has_initial_state is false", "has_initial_state off somewhere",
      [](const Problem& p) { return any_sequence(p, [](bool slot, bool has) { return slot && !has; }); }},
     DecodeSlip::flag_ignored},
    {{"decode.no_slot_computed", "a sequence without a slot gets what a state of zero gives",
      "an index that is not positive",
      [](const Problem& p) { return any_sequence(p, [](bool slot, bool) { return !slot; }); }},
     DecodeSlip::no_slot_computed},
    {{"decode.state_bf16", "the state is rounded to bf16 in an f32 pool", "an f32 pool",
      [](const Problem& p) { return p.state == DType::f32; }},
     DecodeSlip::state_bf16},
};

template <class Rows>
std::vector<Fault> faults_of(const Rows& rows) {
  std::vector<Fault> list;
  for (const auto& row : rows) list.push_back(row.fault);
  return list;
}

template <class Rows>
const auto& row_of(const Rows& rows, const Fault& fault) {
  for (const auto& row : rows)
    if (row.fault.name == fault.name) return row;
  fail("fault ", fault.name, ": expected one of the problem's op");
}

}  // namespace

std::span<const Fault> faults(std::string_view op) {
  static const std::vector<Fault> kGdn = faults_of(kRows), kDecode = faults_of(kDecodeRows);
  if (op == "gdn") return kGdn;
  if (op == "gdn_decode") return kDecode;
  return {};
}

const Fault& fault(std::string_view name) {
  std::string known;
  for (const char* op : {"gdn", "gdn_decode"})
    for (const Fault& f : faults(op)) {
      if (f.name == name) return f;
      known += " " + std::string(f.name);
    }
  fail("fault: expected one of", known, ", got '", name, "'");
}

Tensors run_with_fault(const Problem& problem, const Tensors& inputs, const Staging& staging, const Fault& fault) {
  if (problem.op == "gdn_decode") return gdn_decode(problem, inputs, row_of(kDecodeRows, fault).slip);
  if (problem.op != "gdn") fail("fault ", fault.name, ": expected op gdn or gdn_decode, got ", problem.op);
  const Row& row = row_of(kRows, fault);
  Call call{problem, inputs, staging};
  if (row.before) row.before(call);
  Tensors outputs = gdn_staged(call.problem, call.inputs, call.staging, false, nullptr, row.slip);
  if (row.after && problem.tokens() > 0) row.after(problem, outputs);
  return outputs;
}

}  // namespace deltagauge::reference
