// CPU backends: the oracle rounded to the stored dtypes, the plain reference forms in f32, and the reference by every
// staging of its table, which promises the bits of its degrees of context parallelism where it works in chunks of 64.
#include <functional>
#include <memory>
#include <string>

#include "core/op.h"
#include "oracle/oracle.h"
#include "reference/gdn.h"
#include "reference/staging.h"
#include "validate/backends/arena_plan.h"
#include "validate/cp/degree_backend.h"
#include "validate/run.h"

namespace deltagauge::validate {
namespace {

// The right answer as a kernel would store it. Its budget is that of the most careful staging of the op.
class OracleBackend : public Backend {
 public:
  std::string_view name() const override { return "oracle.f64"; }
  std::string_view summary() const override { return "the f64 oracle, rounded to the stored dtypes"; }
  std::optional<std::string> unsupported(const Problem&) const override { return {}; }
  std::string_view staging(const Problem& problem) const override {
    if (problem.op == "gdn") return "recurrent.f64";
    return problem.op == "gdn_decode" ? "gdn_decode.f32" : problem.op == "gate" ? "gate.f32" : "l2norm.f32";
  }
  std::unique_ptr<Plan> plan(const Problem& problem, const Tensors& inputs, const PlanOptions& options) const override {
    return std::make_unique<ArenaPlan>(problem, inputs, options, [problem, taps = options.taps](const Tensors& from_arena) {
      auto answer = oracle::answer(problem, from_arena, {.precision = oracle::Precision::f64, .taps = taps});
      Tensors outputs = std::move(answer.taps);
      for (const TensorSpec& spec : op_info(problem.op).outputs(problem))
        outputs[spec.name] = cast(get(answer.outputs, spec.name), spec.dtype);
      return outputs;
    });
  }
};

// One way of the reference to answer; its budget is that of `staging`, its chunks may be others.
class ReferenceBackend : public Backend, public Promises {
 public:
  using Answer = std::function<Tensors(const Problem&, const Tensors& inputs, bool taps)>;

  // chunk: its tokens a chunk, 0: token by token. op: the same way over ranks, or null.
  ReferenceBackend(std::string name, std::string summary, const reference::Staging& staging, std::int64_t chunk,
                   Answer answer, std::shared_ptr<const cp::StagedOp> op)
      : name_("reference." + std::move(name)),
        summary_(std::move(summary)),
        staging_(staging),
        chunk_(chunk),
        answer_(std::move(answer)),
        cp_degrees_(cp::degrees_of(name_, std::move(op))) {}
  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return summary_; }
  std::optional<std::string> unsupported(const Problem& problem) const override {
    if (staging_.op != problem.op) return "op: expected " + std::string(staging_.op) + ", got " + problem.op;
    if (staging_.accumulate == reference::Accumulate::tensor_core && problem.io == DType::f32)
      return "io: expected bf16 or f16 for tensor-core sums, got f32";
    return {};
  }
  std::string_view staging(const Problem&) const override { return staging_.name; }
  std::unique_ptr<Plan> plan(const Problem& problem, const Tensors& inputs, const PlanOptions& options) const override {
    return std::make_unique<ArenaPlan>(problem, inputs, options,
                                       [problem, answer = answer_, taps = options.taps](const Tensors& from_arena) {
                                         return answer(problem, from_arena, taps);
                                       });
  }
  std::optional<std::string> not_promised(std::string_view rung, const Problem& problem) const override {
    if (rung != "split" || chunk_ == 0 || problem.chunk % chunk_ == 0) return std::nullopt;
    return "its chunks have " + std::to_string(chunk_) + " tokens, and calls meet after " + std::to_string(problem.chunk);
  }
  std::vector<const Backend*> cp_degrees() const override { return pointers(cp_degrees_); }

 private:
  std::string name_, summary_;
  reference::Staging staging_;
  std::int64_t chunk_;
  Answer answer_;
  Backends cp_degrees_;
};

}  // namespace

void add_cpu_backends(Registry& registry) {
  using reference::Precision, reference::Staging, reference::staging;
  const auto add = [&](std::string name, std::string summary, const Staging& s, std::int64_t chunk,
                       ReferenceBackend::Answer answer, std::shared_ptr<const cp::StagedOp> op = nullptr) {
    registry.add(
        std::make_unique<ReferenceBackend>(std::move(name), std::move(summary), s, chunk, std::move(answer), std::move(op)));
  };
  registry.add(std::make_unique<OracleBackend>());
  add("recurrent", "token by token in f32", staging("recurrent.f32"), 0,
      [](const Problem& p, const Tensors& inputs, bool) { return reference::gdn_recurrent(p, inputs, Precision::f32); });
  for (const std::int64_t chunk : {16, 32, 64, 128}) {
    Staging f32 = staging("chunk64.f32");
    f32.chunk = chunk;
    add("chunk" + std::to_string(chunk), "chunk form in f32", staging("chunk64.f32"), chunk,
        [f32](const Problem& p, const Tensors& inputs, bool) { return reference::run(p, inputs, f32, false); });
  }
  for (const Staging& s : reference::stagings())
    add(
        "as_kernel." + std::string(s.name), std::string(s.summary), s, s.chunk,
        [s](const Problem& p, const Tensors& inputs, bool taps) { return reference::run(p, inputs, s, taps); },
        cp::reference_op(s));
}

}  // namespace deltagauge::validate
