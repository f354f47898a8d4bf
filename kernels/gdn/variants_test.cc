// What the gdn variants take, and why they refuse: sizes and dtypes only, so no GPU and no CUDA is needed.
#include <gtest/gtest.h>

#include <set>

#include "core/error.h"
#include "kernels/gdn/gdn.h"

namespace deltagauge::kernels::gdn {
namespace {

Args shape(std::int64_t T, std::int64_t N, std::int64_t K, std::int64_t V) {
  return {.T = T, .N = N, .HK = 2, .HV = 4, .K = K, .V = V, .scale = 1};
}

TEST(Variants, NamesAreUniqueAndNoneIsAuto) {
  std::set<std::string_view> names{"auto"};
  for (const Variant& v : variants()) {
    EXPECT_TRUE(names.insert(v.name).second) << v.name;
    EXPECT_EQ(&find_variant(v.name), &v);
    EXPECT_FALSE(v.staging.empty()) << v.name;
    EXPECT_FALSE(v.summary.empty()) << v.name;
  }
}

TEST(Variants, AnUnknownNameIsAnErrorThatNamesTheKnownOnes) {
  try {
    find_variant("chunk_sm70");
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "gdn variant: expected one of recurrent chunk_sm80 chunk_sm90 chunk_sm90_fused chunk_sm90_segments "
                 "chunk_sm80_split auto, got "
                 "'chunk_sm70'");
  }
}

TEST(Variants, RefusalsSayExpectedAndGot) {
  struct Row {
    std::string_view variant;
    Args args;
    std::string reason;  // empty: supported
  };
  Args f32 = shape(64, 1, 64, 64), f64_state = f32, i32_gate = f32, f64_beta = f32, many = shape(1, 1 << 26, 64, 64);
  f32.io = DType::f32;
  f64_state.state = DType::f64;
  Args odd_slots = shape(10, 1, 64, 64), bf16_slots = odd_slots;
  odd_slots.slot_stride = 4 * 64 * 64 + 3;
  bf16_slots.slot_stride = 4 * 64 * 64 + 4;
  bf16_slots.state = DType::bf16;
  Args persistent = shape(10, 1, 64, 64), fixed = persistent;
  persistent.schedule = Schedule::persistent;
  fixed.schedule = Schedule::static_grid;
  i32_gate.gate_dtype = DType::i32;
  f64_beta.beta_dtype = DType::f64;
  const Row rows[] = {
      {"recurrent", shape(10, 1, 1, 256), ""},
      {"recurrent", f32, ""},
      {"recurrent", shape(10, 1, 257, 64), "head sizes: expected K and V in [1, 256], got K = 257, V = 64"},
      {"recurrent", shape(10, 1, 64, 0), "head sizes: expected K and V in [1, 256], got K = 64, V = 0"},
      {"recurrent", f64_state, "state: expected one of f32 bf16, got f64"},
      {"recurrent", i32_gate, "gate_dtype: expected one of f32 bf16 f16, got i32"},
      {"recurrent", f64_beta, "beta_dtype: expected one of f32 bf16 f16, got f64"},
      {"recurrent", many, "N * HV: expected at most 268435455, got N = 67108864, HV = 4"},
      {"chunk_sm80", shape(10, 1, 64, 64), ""},
      {"chunk_sm80", shape(10, 1, 128, 128), ""},
      {"chunk_sm80", shape(10, 1, 64, 128), "head sizes: expected K = V, 64 or 128, got K = 64, V = 128"},
      {"chunk_sm80", shape(10, 1, 96, 96), "head sizes: expected K = V, 64 or 128, got K = 96, V = 96"},
      {"chunk_sm80", f32, "io: expected one of bf16 f16, got f32"},
      {"recurrent", persistent, ""},
      {"chunk_sm80", persistent, ""},
      {"chunk_sm90", persistent, "schedule: expected automatic or static, got persistent"},
      {"chunk_sm90", fixed, ""},
      {"recurrent", odd_slots, ""},
      {"chunk_sm80", odd_slots, "slot_stride: expected a multiple of 16 bytes, got 65548"},
      {"chunk_sm80", bf16_slots, "slot_stride: expected a multiple of 16 bytes, got 32776"},
      {"auto", f32, ""},
      {"auto", shape(10, 1, 300, 300), "head sizes: expected K and V in [1, 256], got K = 300, V = 300"},
  };
  for (const Row& row : rows)
    EXPECT_EQ(unsupported(row.variant, row.args).value_or(""), row.reason) << row.variant << " K=" << row.args.K;
}

TEST(Variants, ALimitIsOfOneQuantityAndOneIo) {
  EXPECT_EQ(beyond_limit("chunk_sm80", DType::f16, "h0", 1e9).value_or(""),
            "h0: expected a magnitude of at most 143982512 with io f16, got 1e+09");
  EXPECT_FALSE(beyond_limit("chunk_sm80", DType::f16, "h0", 143982512));
  EXPECT_FALSE(beyond_limit("chunk_sm80", DType::bf16, "h0", 1e9));
  EXPECT_FALSE(beyond_limit("chunk_sm80", DType::f16, "g", 1e38));
}

TEST(Schedules, HaveNames) {
  EXPECT_EQ(name(Schedule::automatic), "automatic");
  EXPECT_EQ(name(Schedule::static_grid), "static");
  EXPECT_EQ(name(Schedule::persistent), "persistent");
}

TEST(Variants, AutoTakesChunksWhereTheyFitAndSequencesAreLongEnough) {
  EXPECT_EQ(pick(shape(64, 1, 128, 128)), "chunk_sm80");
  EXPECT_EQ(pick(shape(64, 1, 128, 128), 80), "chunk_sm80");
  EXPECT_EQ(pick(shape(64, 1, 128, 128), 90), unsupported_device("chunk_sm90", 90) ? "chunk_sm80" : "chunk_sm90");
  EXPECT_EQ(pick(shape(63, 1, 128, 128)), "recurrent");
  EXPECT_EQ(pick(shape(640, 11, 128, 128)), "recurrent");
  EXPECT_EQ(pick(shape(640, 10, 128, 128)), "chunk_sm80");
  EXPECT_EQ(pick(shape(640, 1, 96, 192)), "recurrent");
  if (unsupported_device("chunk_sm90", 90)) return;
  const auto sm90 = [](std::int64_t T, std::int64_t N, std::int64_t HK, std::int64_t HV, DType io) {
    Args args = shape(T, N, 128, 128);
    args.HK = HK;
    args.HV = HV;
    args.io = io;
    return pick(args, 90);
  };
  EXPECT_EQ(sm90(32768, 1, 2, 8, DType::bf16), "chunk_sm90_segments");
  EXPECT_EQ(sm90(32768, 2, 2, 8, DType::f16), "chunk_sm90_segments");
  EXPECT_EQ(sm90(32768, 3, 2, 8, DType::bf16), "chunk_sm90");
  EXPECT_EQ(sm90(16383, 1, 2, 8, DType::bf16), "chunk_sm90");
  EXPECT_EQ(sm90(32768, 8, 32, 32, DType::bf16), "chunk_sm90_fused");
  EXPECT_EQ(sm90(32768, 8, 32, 32, DType::f16), "chunk_sm90_fused");
  EXPECT_EQ(sm90(32768, 4, 16, 64, DType::bf16), "chunk_sm90_fused");
  EXPECT_EQ(sm90(32768, 5, 4, 16, DType::bf16), "chunk_sm90_fused");
  EXPECT_EQ(sm90(32768, 2, 16, 32, DType::bf16), "chunk_sm90");
  EXPECT_EQ(unsupported_device("chunk_sm90", 80).value_or(""), "device: expected sm_90, got sm_80");
  EXPECT_FALSE(unsupported_device("chunk_sm80", 120));
}

}  // namespace
}  // namespace deltagauge::kernels::gdn
