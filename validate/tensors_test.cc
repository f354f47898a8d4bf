// Cases from given tensors: what a dumped case gives back, other layouts, and what is refused.
#include "validate/tensors.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/inputs.h"
#include "core/op.h"

namespace deltagauge::validate {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;
constexpr const char* kCase = "gdn/fwd/len=3+0+2,HK=1,HV=2,K=4,V=2/bf16/h0=normal=1/seed=5";

Safetensors dumped(const std::string& id) { return {make_inputs(parse_id(id)), {}}; }

std::string error_of(const Safetensors& file, const Settings& settings = {}) {
  try {
    case_from_tensors(file, "gdn", settings);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

Tensor with_batch(const Tensor& t, std::int64_t batch) {
  Shape shape = t.shape();
  shape[0] /= batch;
  shape.insert(shape.begin(), batch);
  return from_f64(t.dtype(), shape, to_f64(t));
}

TEST(CaseFromTensors, finds_sizes_lengths_and_dtypes_of_a_dumped_case) {
  const Safetensors file = dumped(kCase);
  const GivenCase given = case_from_tensors(file, "gdn", {});
  Case expected = parse_id(kCase);
  expected.seed = 0;
  expected.problem.data = {"file"};
  EXPECT_EQ(to_id(given.test), to_id(expected));
  for (const TensorSpec& spec : op_info("gdn").inputs(given.test.problem))
    EXPECT_TRUE(bitwise_equal(get(given.inputs, spec.name), get(file.tensors, spec.name))) << spec.name;
  EXPECT_TRUE(given.outputs.empty());
}

TEST(CaseFromTensors, takes_what_tensors_do_not_show_from_metadata_then_settings) {
  Safetensors file = dumped(kCase);
  file.metadata["deltagauge.case"] = std::string(kCase) + "/scale=0.5/l2norm=on";
  const Case c = case_from_tensors(file, "gdn", Settings{{"chunk", "32"}}).test;
  EXPECT_EQ(c.problem.scale, 0.5);
  EXPECT_EQ(c.problem.l2norm, Switch::on);
  EXPECT_EQ(c.problem.chunk, 32);
}

TEST(CaseFromTensors, reads_a_batch_as_sequences_and_a_bare_token_axis_as_one) {
  Safetensors file = dumped("gdn/fwd/len=3+3,HK=1,HV=2,K=4,V=2/f16/layout=dense/seed=5");
  const Safetensors flat = file;
  EXPECT_EQ(case_from_tensors(flat, "gdn", {}).test.problem.lengths, (std::vector<std::int64_t>{6}));
  for (auto& [name, tensor] : file.tensors) tensor = with_batch(tensor, 2);
  const GivenCase given = case_from_tensors(file, "gdn", {});
  EXPECT_EQ(given.test.problem.lengths, (std::vector<std::int64_t>{3, 3}));
  EXPECT_EQ(given.test.problem.layout, Layout::dense);
  EXPECT_TRUE(bitwise_equal(get(given.inputs, "q"), get(flat.tensors, "q")));
}

TEST(CaseFromTensors, reads_a_packed_batch_of_one_with_64_bit_offsets_that_end_early) {
  Safetensors file = dumped("gdn/fwd/len=3+2,cap=7,HK=1,HV=2,K=4,V=2/f16/seed=5");
  const Tensor cu = get(file.tensors, "cu_seqlens");
  for (auto& [name, tensor] : file.tensors) tensor = with_batch(tensor, 1);
  file.tensors["cu_seqlens"] = cast(cu, DType::i64);
  const GivenCase given = case_from_tensors(file, "gdn", {});
  EXPECT_EQ(given.test.problem.lengths, (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(given.test.problem.capacity, 7);
  EXPECT_TRUE(bitwise_equal(get(given.inputs, "cu_seqlens"), cu));
}

TEST(CaseFromTensors, fills_in_a_gate_of_zero_and_a_beta_of_one) {
  Safetensors file = dumped(kCase);
  file.tensors.erase("g");
  file.tensors.erase("beta");
  const GivenCase given = case_from_tensors(file, "gdn", {});
  EXPECT_EQ(to_f64(get(given.inputs, "g")), std::vector<double>(10, 0));
  EXPECT_EQ(to_f64(get(given.inputs, "beta")), std::vector<double>(10, 1));
}

TEST(CaseFromTensors, says_what_is_wrong_expected_and_got) {
  const auto broken = [](std::string_view name, Tensor tensor) {
    Safetensors file = dumped(kCase);
    file.tensors[std::string(name)] = std::move(tensor);
    return error_of(file);
  };
  const auto poisoned = [](std::string_view name, double value) {
    Safetensors file = dumped(kCase);
    file.tensors[std::string(name)].store(3, value);
    return error_of(file);
  };
  const auto cu = [](std::vector<double> v) { return from_f64(DType::i32, {static_cast<std::int64_t>(v.size())}, v); };
  Safetensors missing = dumped(kCase);
  missing.tensors.erase("k");
  missing.tensors.erase("v");
  Safetensors state_alone = dumped(kCase);
  state_alone.tensors["final_state"] = Tensor(DType::f32, {3, 2, 2, 4});
  Safetensors no_pool = dumped("gdn/fwd/len=3+2,HK=1,HV=2,K=4,V=2/bf16/h0=normal=1/slots=4/seed=5"), no_final_pool = no_pool;
  no_pool.tensors.erase("initial_state");
  no_final_pool.tensors["o"] = Tensor(DType::bf16, {5, 2, 2});
  Safetensors batched = dumped(kCase);
  for (auto& [name, t] : batched.tensors) t = name == "cu_seqlens" || name == "initial_state" ? t : with_batch(t, 5);
  const struct {
    std::string error, expected;
  } kCases[] = {
      {error_of(missing),
       "tensors missing from the file: k v; expected q [T, HK, K], k [T, HK, K], v [T, HV, V] of f32, bf16 or f16, got "
       "beta [5, 2] cu_seqlens [4] g [5, 2] initial_state [3, 2, 2, 4] q [5, 1, 4]"},
      {error_of({}),
       "tensors missing from the file: q k v; expected q [T, HK, K], k [T, HK, K], v [T, HV, V] of f32, bf16 or "
       "f16, got none"},
      {broken("q", Tensor(DType::bf16, {5, 4})), "q: expected [T, HK, K] or [B, T, HK, K], got [5, 4]"},
      {broken("k", Tensor(DType::bf16, {5, 1, 3})), "k: expected shape [5, 1, 4], got [5, 1, 3]"},
      {broken("k", Tensor(DType::f16, {5, 1, 4})), "k: expected dtype bf16 as q, got f16"},
      {broken("q", Tensor(DType::f64, {5, 1, 4})), "q: expected dtype f32 bf16 f16, got f64"},
      {broken("v", Tensor(DType::bf16, {4, 2, 2})), "v: expected shape [5, 2, 2], got [4, 2, 2]"},
      {broken("v", Tensor(DType::bf16, {5, 0, 2})), "v: expected sizes of at least 1, got [5, 0, 2]"},
      {broken("g", Tensor(DType::f32, {5, 1})), "g: expected shape [5, 2], got [5, 1]"},
      {broken("initial_state", Tensor(DType::f32, {3, 2, 4, 2})),
       "initial_state: expected shape [3, 2, 2, 4], got [3, 2, 4, 2]"},
      {broken("initial_state", Tensor(DType::f16, {3, 2, 2, 4})), "initial_state: expected dtype f32 bf16, got f16"},
      {broken("cu_seqlens", cu({1, 3, 3, 5})), "cu_seqlens[0]: expected 0, got 1"},
      {broken("cu_seqlens", cu({0, 3, 2, 5})), "cu_seqlens[2]: expected a value in [3, T = 5], got 2"},
      {broken("cu_seqlens", cu({0, 3, 3, 6})), "cu_seqlens[3]: expected a value in [3, T = 5], got 6"},
      {broken("cu_seqlens", Tensor(DType::f32, {4})), "cu_seqlens: expected dtype i32 or i64, got f32"},
      {broken("o", Tensor(DType::f32, {5, 2, 2})), "o: expected dtype bf16 as q, got f32"},
      {broken("o", Tensor(DType::bf16, {5, 2, 3})), "o: expected shape [5, 2, 2], got [5, 2, 3]"},
      {error_of(state_alone), "o: expected [5, 2, 2] of bf16 beside final_state, got none"},
      {error_of(no_pool), "initial_state: expected a pool [P, HV, V, K] of f32 or bf16 beside state_indices, got none"},
      {error_of(no_final_pool), "final_state: expected the pool [4, 2, 2, 4] of f32 after the call beside o, got none"},
      {error_of(batched), "q: expected a batch of 1 beside cu_seqlens, got 5"},
      {poisoned("q", NAN), "q: expected finite values; 1 of 20 values are not, first at [0, 0, 3]: nan"},
      {poisoned("v", INFINITY), "v: expected finite values; 1 of 20 values are not, first at [0, 1, 1]: inf"},
      {poisoned("g", 0.5), "g: expected natural-log decays, at most 0; 1 of 10 values are not, first at [1, 1]: 0.5"},
      {poisoned("beta", -1), "beta: expected values in [0, 2]; 1 of 10 values are not, first at [1, 1]: -1"},
      {poisoned("initial_state", NAN),
       "initial_state: expected finite values; 1 of 48 values are not, first at [0, 0, 0, 3]: nan"},
      {error_of(dumped(kCase), {{"K", "8"}}), "--set K=8: the tensors of the file say otherwise"},
      {error_of(dumped(kCase), {{"keys", "repeated"}}),
       "--set keys=repeated: expected no axis that says how inputs are drawn"},
      {broken("Beta", Tensor(DType::f32, {5, 2})), "tensor 'Beta': not supported for op gdn, which takes q k v g beta"},
      {broken("raw_beta", Tensor(DType::f32, {5, 2})), "tensor 'raw_beta': not supported for op gdn"},
      {broken("A_log", Tensor(DType::f32, {2})), "A_log: expected raw_gate beside it, got none"},
      {broken("dt_bias", Tensor(DType::f32, {2})), "dt_bias: expected raw_gate beside it, got none"},
      {broken("raw_gate", Tensor(DType::f32, {5, 2})), "raw_gate: expected no g beside it, got both"},
      {error_of(dumped(kCase), {{"transform", "bounded"}}),
       "transform: expected raw_gate=on beside it, since g is no raw gate, got raw_gate=off"},
      {error_of(dumped(kCase), {{"raw_gate", "on"}}), "--set raw_gate=on: the tensors of the file say otherwise"},
      {broken("has_initial_state", Tensor(DType::boolean, {3})),
       "has_initial_state: expected state_indices beside it, got none"},
      {broken("state_indices", Tensor(DType::f32, {3})), "state_indices: expected dtype i32 or i64, got f32"},
  };
  for (const auto& one : kCases) EXPECT_EQ(one.error.substr(0, one.expected.size()), one.expected);
  EXPECT_EQ(poisoned("g", -INFINITY), "");
  Safetensors other = dumped(kCase);
  other.metadata["deltagauge.case"] = "gdn/fwd/len=x";
  EXPECT_EQ(error_of(other).substr(0, 40), "deltagauge.case in the file: len: expect");
  EXPECT_THROW(case_from_tensors(dumped(kCase), "l2norm", {}), Error);
}

constexpr const char* kRaw =
    "gdn/fwd/len=3+0+2,HK=1,HV=2,K=4,V=2/bf16/gate=model/gdtype=f16/raw_gate=on/transform=bounded/lb=-4/seed=5";

TEST(CaseFromTensors, takes_a_raw_gate_whose_transform_is_said) {
  Safetensors file = dumped(kRaw);
  Case expected = parse_id(kRaw);
  expected.seed = 0;
  expected.problem.gate = {"mild"};
  expected.problem.data = {"file"};
  const Settings said{{"transform", "bounded"}, {"lb", "-4"}};
  const GivenCase given = case_from_tensors(file, "gdn", said);
  EXPECT_EQ(to_id(given.test), to_id(expected));
  for (const TensorSpec& spec : op_info("gdn").inputs(given.test.problem))
    EXPECT_TRUE(bitwise_equal(get(given.inputs, spec.name), get(file.tensors, spec.name))) << spec.name;
  file.metadata["deltagauge.case"] = kRaw;
  EXPECT_EQ(case_from_tensors(file, "gdn", {}).test.problem.lower_bound, -4);
  EXPECT_EQ(case_from_tensors(file, "gdn", Settings{{"transform", "softplus"}}).test.problem.transform, "softplus");
  file.tensors.erase("A_log");
  file.tensors["dt_bias"] = cast(get(file.tensors, "dt_bias"), DType::bf16);
  const GivenCase short_of = case_from_tensors(file, "gdn", {});
  EXPECT_EQ(short_of.test.problem.a_log, Switch::off);
  EXPECT_EQ(get(short_of.inputs, "dt_bias").dtype(), DType::f32);
  file.tensors.erase("dt_bias");
  EXPECT_EQ(to_f64(get(case_from_tensors(file, "gdn", {}).inputs, "dt_bias")), std::vector<double>(2, 0));
}

TEST(CaseFromTensors, says_what_is_wrong_with_a_raw_gate) {
  const Settings said{{"transform", "softplus"}};
  const auto with = [](std::string_view name, Tensor tensor) {
    Safetensors file = dumped(kRaw);
    file.tensors[std::string(name)] = std::move(tensor);
    return file;
  };
  const auto poisoned = [](std::string_view name, double value) {
    Safetensors file = dumped(kRaw);
    file.tensors[std::string(name)].store(1, value);
    return file;
  };
  EXPECT_EQ(error_of(dumped(kRaw)),
            "raw_gate: expected --set transform=softplus or --set transform=bounded, since the tensors do not show which, "
            "got neither");
  EXPECT_EQ(error_of(with("raw_gate", Tensor(DType::f32, {5, 3})), said), "raw_gate: expected shape [5, 2], got [5, 3]");
  EXPECT_EQ(error_of(with("A_log", Tensor(DType::f32, {1})), said), "A_log: expected shape [2], got [1]");
  EXPECT_EQ(error_of(with("dt_bias", Tensor(DType::i32, {2})), said), "dt_bias: expected dtype f32 bf16 f16, got i32");
  EXPECT_EQ(error_of(poisoned("raw_gate", NAN), said),
            "raw_gate: expected numbers; 1 of 10 values are not, first at [0, 1]: nan");
  EXPECT_EQ(error_of(poisoned("raw_gate", -INFINITY), said), "");
  EXPECT_EQ(error_of(poisoned("A_log", INFINITY), said),
            "A_log: expected finite values; 1 of 2 values are not, first at [1]: inf");
}

TEST(CaseFromTensors, takes_a_case_without_tokens_back) {
  for (const char* id : {"gdn/fwd/len=0,HK=1,HV=2,K=4,V=2/bf16", "gdn/fwd/len=0+0,HK=1,HV=2,K=4,V=2/f32/h0=normal=1"})
    EXPECT_EQ(case_from_tensors(dumped(id), "gdn", {}).test.problem.lengths, parse_id(id).problem.lengths);
  Safetensors huge = dumped("gdn/fwd/len=0,HK=1,HV=2,K=4,V=2/bf16");
  huge.tensors.erase("cu_seqlens");
  for (auto& [name, tensor] : huge.tensors) {
    Shape shape = tensor.shape();
    shape.insert(shape.begin(), std::int64_t{1} << 40);
    tensor = Tensor(tensor.dtype(), shape);
  }
  EXPECT_EQ(error_of(huge).substr(0, 49), "q: expected a batch of 1 to 16777216 sequences, g");
}

TEST(CaseFromTensors, refuses_a_recurrence_that_diverges_as_drawn_inputs_are) {
  const Safetensors file = dumped("gdn/fwd/len=64,K=16,V=8/bf16/gate=none/beta=const=2/kscale=2/diverge=on/seed=1");
  EXPECT_NE(error_of(file).find("the recurrence diverges at token"), std::string::npos) << error_of(file);
  EXPECT_EQ(error_of(file, {{"diverge", "on"}}), "");
}

TEST(Statistics, leave_non_finite_values_out) {
  const Statistics s = statistics(from_f64(DType::f32, {4}, std::vector<double>{3, NAN, -1, INFINITY}));
  EXPECT_EQ(s.count, 4);
  EXPECT_EQ(s.not_finite, 2);
  EXPECT_EQ(s.least, -1);
  EXPECT_EQ(s.most, 3);
  EXPECT_EQ(s.mean, 1);
  EXPECT_EQ(s.rms, std::sqrt(5));
}

}  // namespace
}  // namespace deltagauge::validate
