#include "reference/staging.h"

#include <string>

#include "core/error.h"
#include "core/op.h"
#include "reference/gate.h"
#include "reference/gdn.h"
#include "reference/gdn_decode.h"
#include "reference/l2norm.h"
#include "reference/rounding.h"

namespace deltagauge::reference {
namespace {

constexpr Store kF64 = Store::f64, kF32 = Store::f32, kIo = Store::io;

// One kind for every operand but the decays, which stay in f32.
constexpr Staging uniform(std::string_view name, std::string_view summary, std::int64_t chunk, Store store,
                          Accumulate accumulate, Solver solver, std::string_view op = "gdn") {
  const Store decay = store == kF64 ? kF64 : kF32;
  return {name, summary, chunk, store, store, store, store, store, store, decay, accumulate, solver, op};
}

constexpr Staging chunk_sm90(std::string_view name, std::string_view summary, std::int64_t chunk, Solver solver) {
  return {.name = name,
          .summary = summary,
          .chunk = chunk,
          .Ainv = Store::tf32,
          .P = Store::tf32,
          .S = Store::io_scaled,
          .resid = Store::tf32_cut,
          .v_new = Store::tf32_cut,
          .v_new_decayed = Store::io_scaled,
          .decay = kF32,
          .accumulate = Accumulate::tensor_core,
          .solver = solver,
          .scaled_P = true,
          .folded_norms = true};
}

constexpr Staging kStagings[] = {
    uniform("recurrent.f32", "token by token in f32", 0, kF32, Accumulate::f32, Solver::fs32),
    uniform("recurrent.f64", "token by token in f64", 0, kF64, Accumulate::f64, Solver::fs64),
    uniform("chunk64.io", "every operand in io, f32 sums", 64, kIo, Accumulate::f32, Solver::block16),
    uniform("chunk64.io.tc", "every operand in io, tensor core sums", 64, kIo, Accumulate::tensor_core, Solver::block16),
    uniform("chunk16.io", "as chunk64.io, 16 rows", 16, kIo, Accumulate::f32, Solver::block16),
    uniform("chunk32.io", "as chunk64.io, 32 rows", 32, kIo, Accumulate::f32, Solver::block16),
    uniform("chunk128.io", "as chunk64.io, 128 rows", 128, kIo, Accumulate::f32, Solver::block16),
    uniform("chunk64.f32", "nothing below f32", 64, kF32, Accumulate::f32, Solver::fs32),
    uniform("chunk64.f64", "nothing below f64", 64, kF64, Accumulate::f64, Solver::fs64),
    {.name = "chunk_sm80.plain",
     .summary = "S and what enters it in io, the other operands in tf32, tensor core sums",
     .chunk = 64,
     .Ainv = Store::tf32,
     .P = Store::tf32,
     .S = Store::io_scaled,
     .resid = Store::tf32,
     .v_new = Store::tf32,
     .v_new_decayed = Store::io_scaled,
     .decay = kF32,
     .accumulate = Accumulate::tensor_core,
     .solver = Solver::block16},
    chunk_sm90("chunk_sm90.plain", "as chunk_sm80.plain, resid and v_new cut to tf32, inverse merged in tf32, P scaled", 64,
               Solver::halves32_tf32),
    chunk_sm90("chunk_sm90.short", "as chunk_sm90.plain, 32 rows, whose inverse needs no merge in tf32", 32,
               Solver::block16),
    {.name = "chunk_sm80.split",
     .summary = "every operand but q and k as hi + lo, tensor core sums",
     .chunk = 64,
     .Ainv = Store::split_tf32,
     .P = Store::split_tf32,
     .S = Store::split_scaled,
     .resid = Store::split_tf32,
     .v_new = Store::split_tf32,
     .v_new_decayed = Store::split_scaled,
     .decay = kF32,
     .accumulate = Accumulate::tensor_core,
     .solver = Solver::block16},
    uniform("gdn_decode.f32", "one token in f32, q and k kept in f32", 0, kF32, Accumulate::f32, Solver::fs32, "gdn_decode"),
    uniform("l2norm.f32", "f32 inside, io at the end", 0, kF32, Accumulate::f32, Solver::fs32, "l2norm"),
    uniform("gate.f32", "f32, rounded after every operation", 0, kF32, Accumulate::f32, Solver::fs32, "gate"),
};

// Forward of chunk64.io with one thing changed.
constexpr Staging peer(std::string_view name, std::string_view summary, GateSplit gate, Store S = kIo,
                       Solver solver = Solver::block16, FastExp fast_exp = FastExp::exp2f) {
  Staging staging = uniform(name, summary, 64, kIo, Accumulate::f32, solver);
  staging.S = S;
  staging.gate = gate;
  staging.fast_exp = fast_exp;
  return staging;
}

constexpr Staging kPeers[] = {
    peer("split16.first.f32", "gates split about the first of 16 rows, f32 factors", {Anchor::first, 16, kF32}),
    peer("split16.first.bf16", "gates split about the first of 16 rows, bf16 factors", {Anchor::first, 16, Store::bf16}),
    peer("split16.first.f16", "gates split about the first of 16 rows, f16 factors", {Anchor::first, 16, Store::f16}),
    peer("split16.middle.f32", "gates split about the middle of 16 rows, f32 factors", {Anchor::middle, 16, kF32}),
    peer("split16.middle.f16", "gates split about the middle of 16 rows, f16 factors", {Anchor::middle, 16, Store::f16}),
    peer("split16.before.f32", "gates split about the row before 16 rows, f32 factors", {Anchor::before, 16, kF32}),
    peer("split8.first.f32", "gates split about the first of 8 rows, f32 factors", {Anchor::first, 8, kF32}),
    peer("split8.first.f16", "gates split about the first of 8 rows, f16 factors", {Anchor::first, 8, Store::f16}),
    peer("split64.before.f32", "gates split over the whole chunk, exp(b_i) exp(-b_j), f32 factors",
         {Anchor::before, 64, kF32}),
    peer("state.f16", "the state as an f16 operand, unscaled", {}, Store::f16),
    peer("doubling16.f16", "16 x 16 inverses by doubling in f16", {}, kIo, Solver::doubling16_f16),
    peer("ex2.ftz", "fast decays by ex2.approx.ftz", {}, kIo, Solver::block16, FastExp::ex2_ftz),
};

void check_inputs(const Problem& problem, const Tensors& inputs) {
  for (const TensorSpec& spec : op_info(problem.op).inputs(problem)) {
    const Tensor& t = get(inputs, spec.name);
    if (t.dtype() != spec.dtype || t.shape() != spec.shape)
      fail(spec.name, ": expected ", name(spec.dtype), " ", to_string(spec.shape), ", got ", name(t.dtype()), " ",
           to_string(t.shape()));
  }
}

}  // namespace

std::string_view name(Store store) {
  constexpr std::string_view kNames[] = {"f64",  "f32",        "tf32",      "io",           "split",   "f16",
                                         "bf16", "split_tf32", "io_scaled", "split_scaled", "tf32_cut"};
  return kNames[static_cast<int>(store)];
}
std::string_view name(Accumulate accumulate) {
  constexpr std::string_view kNames[] = {"f64", "f32", "tensor_core"};
  return kNames[static_cast<int>(accumulate)];
}
std::string_view name(Solver solver) {
  constexpr std::string_view kNames[] = {"fs64",         "fs32",         "block16", "doubling16_f16", "doubling16_bf16",
                                         "doubling_f32", "halves32_tf32"};
  return kNames[static_cast<int>(solver)];
}

std::span<const Staging> stagings() { return kStagings; }
std::span<const Staging> peer_stagings() { return kPeers; }

const Staging& staging(std::string_view name) {
  std::string known;
  for (const auto list : {stagings(), peer_stagings()})
    for (const Staging& s : list) {
      if (s.name == name) return s;
      known += " " + std::string(s.name);
    }
  fail("staging: expected one of", known, ", got '", name, "'");
}

Staging without_range_limits(const Staging& staging, DType io) {
  Staging wide = staging;
  for (Store* store : {&wide.Ainv, &wide.P, &wide.S, &wide.resid, &wide.v_new, &wide.v_new_decayed, &wide.decay})
    if (store_format(*store, io) == DType::f16) *store = is_split(*store) ? Store::split_tf32 : Store::tf32;
  wide.gate.endless = true;
  if (wide.fast_exp == FastExp::ex2_ftz) wide.fast_exp = FastExp::ex2;
  return wide;
}

Tensors run(const Problem& problem, const Tensors& inputs, const Staging& staging, bool taps, Ranges* ranges) {
  if (staging.op != problem.op)
    fail("staging ", staging.name, ": expected a problem of op ", staging.op, ", got ", problem.op);
  if (problem.direction != Direction::fwd) fail("direction: expected fwd, got bwd");
  check_inputs(problem, inputs);
  if (problem.op == "gdn_decode") return gdn_decode(problem, inputs);
  if (problem.op == "l2norm") return l2norm(problem, inputs);
  if (problem.op == "gate") return gate(problem, inputs);
  if (staging.chunk == 0)
    return gdn_recurrent(problem, inputs, staging.accumulate == Accumulate::f64 ? Precision::f64 : Precision::f32, ranges);
  return gdn_staged(problem, inputs, staging, taps, ranges);
}

}  // namespace deltagauge::reference
