// Problem: everything that changes the answer or the cost of one call. Case: a Problem, the seed of its inputs and
// overrides of single elements. The text form of a case (its id) is exact both ways; docs/cli.md describes it, and
// axes() is the one list of what it may say.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"

namespace deltagauge {

enum class Direction { fwd, bwd };
enum class MathMode { precise, fast };
enum class Layout { packed, dense };  // dense: equal lengths, no cu_seqlens is passed
enum class Switch { off, on };

// An input distribution: a name and, for some, a number ("rho=0.9", "constant=-5.91", "normal=100").
struct Regime {
  std::string kind;
  double value = 0;
  bool has_value = false;
  friend bool operator==(const Regime&, const Regime&) = default;
};
std::string to_string(const Regime& regime);

struct Problem {
  std::string op = "gdn";  // gdn gdn_decode l2norm gate
  Direction direction = Direction::fwd;
  std::vector<std::int64_t> lengths{64};  // tokens of each sequence; sum is the active end of the packed rows
  std::vector<std::int64_t> ids;          // names of the sequences for the input generator; empty: 0, 1, 2, ...
  std::int64_t capacity = 0;              // T, physical token rows; 0: exactly the sum of lengths
  std::int64_t HK = 1, HV = 1, K = 64, V = 64;
  DType io = DType::bf16;         // q k v o, packed or not (x y of l2norm, raw gate of gate)
  DType state = DType::f32;       // initial_state and final_state storage
  DType gate_dtype = DType::f32;  // of g; of raw_gate where gdn or gdn_decode transforms it
  DType beta_dtype = DType::f32;  // of beta, of raw_beta
  Layout layout = Layout::packed;
  MathMode math = MathMode::precise;
  std::int64_t chunk = 64;             // the chunk whose taps (Ainv, S, ...) are compared; does not change o or final_state
  double scale = 0;                    // of q; 0: K^-1/2
  Switch l2norm = Switch::off;         // on: q and k come raw and the kernel normalises them
  Switch final_state = Switch::on;     // whether the final state is asked for
  std::int64_t slots = 0;              // P of the state pool (docs/math.md#state-pool); 0: a state a sequence, no pool
  std::int64_t slot_pad = 0;           // elements between two slots in memory
  std::string idx = "iota";            // state_indices by sequence name: iota, permuted=S, holes=S, or a list I+I+...
  std::string has = "on";              // has_initial_state by sequence name: on, off, mixed, or a list of 0 and 1
  Switch raw_gate = Switch::off;       // gdn, on: raw_gate, A_log, dt_bias in place of g; the kernel transforms them
  std::string transform = "softplus";  // gate op, raw_gate=on: softplus | bounded
  std::string per = "head";            // gate op: head | channel
  double lower_bound = -5;             // gate op, raw_gate=on, bounded: finite, <= 0
  Switch a_log = Switch::on;           // gate op, raw_gate=on: off means A_log is absent (a = 1)
  Switch neg_eigval = Switch::off;     // gdn_decode: on means beta = 2 sigmoid(raw_beta)
  // Distributions of the inputs, see inputs.h.
  Regime keys{"iid"}, gate{"mild"}, beta{"sigmoid"}, v{"normal", 1, true}, h0{"none"}, data{"random"};
  double kscale = 1;             // norm of the keys before rounding
  Switch diverge = Switch::off;  // on: allow inputs whose recurrence grows without bound

  std::int64_t sequences() const { return static_cast<std::int64_t>(lengths.size()); }
  std::int64_t tokens() const;                                          // sum of lengths: the active end
  std::int64_t rows() const { return capacity ? capacity : tokens(); }  // T
  double q_scale() const;                                               // scale, with its default filled in
  std::vector<std::int64_t> offsets() const;                            // [N + 1], starts at 0
  std::vector<std::int64_t> state_indices() const;                      // [N] slots; empty without a pool
  std::vector<bool> has_initial_state() const;                          // [N]; empty without a pool
  friend bool operator==(const Problem&, const Problem&) = default;
};

// Sets elements of one input after it was drawn: g[7,*]=-89. One entry per axis: a number, a range a:b, or * for all.
struct Override {
  std::string tensor;
  std::vector<std::string> index;
  double value = 0;
  friend bool operator==(const Override&, const Override&) = default;
};

struct Case {
  Problem problem;
  std::uint64_t seed = 0;
  std::vector<Override> overrides;
  friend bool operator==(const Case&, const Case&) = default;
};

std::string to_id(const Case& c);    // canonical text; axes at their default are left out, but for the common ones
Case parse_id(std::string_view id);  // throws Error: unknown op, axis, bad value, with expected and got
void check(const Problem& problem);  // throws Error when the parts do not fit together (HV not a multiple of HK, ...)

// One axis of a Problem, by the name used in ids, configs and --set.
struct Axis {
  std::string_view name, values, meaning;  // values: what may stand there, in words
  std::string_view ops;                    // the ops it belongs to, space separated; "*" for all
  std::string (*get)(const Case&);
  void (*set)(Case&, std::string_view text);  // throws Error on a bad value
};
std::span<const Axis> axes();
void set_axis(Case& c, std::string_view name, std::string_view text);  // throws Error on an unknown axis or bad value

}  // namespace deltagauge
