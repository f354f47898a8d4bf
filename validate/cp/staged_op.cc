// The reference's stagings as staged ops.
#include "validate/cp/staged_op.h"

#include <omp.h>

#include <algorithm>
#include <utility>

#include "kernels/cp/plan.h"
#include "kernels/cp/transport_local.h"
#include "reference/staging.h"
#include "validate/cp/sharded.h"

namespace deltagauge::validate::cp {
namespace {

class ReferenceOp : public StagedOp {
 public:
  explicit ReferenceOp(const reference::Staging& staging)
      : name_("reference.cp." + std::string(staging.name)), staging_(staging) {}
  std::string_view name() const override { return name_; }
  std::string_view staging() const override { return staging_.name; }
  std::optional<std::string> unsupported(const Problem& p) const override {
    if (const auto why = not_staged(p)) return why;
    if (staging_.accumulate == reference::Accumulate::tensor_core && p.io != DType::bf16 && p.io != DType::f16)
      return "io: expected bf16 or f16, got " + std::string(deltagauge::name(p.io));
    return {};
  }
  Tensors whole(const Problem& problem, const Tensors& inputs) const override {
    return reference::run(problem, inputs, staging_, false);
  }
  RankAnswer rank(const Span& span, const kernels::cp::Routing& routing, kernels::cp::Transport& transport,
                  bool taps) const override {
    return run_rank(staging_, span, routing, transport, taps);
  }
  std::vector<RankAnswer> ranks(const Ranks& ranks, bool taps, Fault fault) const override {
    std::vector<RankAnswer> answers(ranks.world());
    const int threads = std::max(1, omp_get_max_threads() / static_cast<int>(ranks.world()));
    kernels::cp::run_local(ranks.world(), [&](kernels::cp::Transport& transport) {
      omp_set_num_threads(threads);  // of this rank; no result depends on it
      const auto r = transport.rank();
      answers[r] = run_rank(staging_, ranks.spans[r], ranks.routings[r], transport, taps, fault);
    });
    return answers;
  }

 private:
  std::string name_;
  const reference::Staging& staging_;
};

}  // namespace

std::optional<std::string> not_staged(const Problem& p) {
  if (p.op != "gdn") return "op: expected gdn, got " + p.op;
  if (p.direction != Direction::fwd) return "direction: expected fwd, got bwd";
  if (p.slots) return "slots: expected no state pool, got " + std::to_string(p.slots) + " slots";
  return {};
}

std::unique_ptr<StagedOp> reference_op(const reference::Staging& staging) {
  if (staging.op != "gdn" || staging.chunk != kernels::cp::kChunk) return nullptr;
  return std::make_unique<ReferenceOp>(staging);
}

void add_reference_ops(StagedOps& ops) {
  for (const reference::Staging& staging : reference::stagings())
    if (auto op = reference_op(staging)) ops.push_back(std::move(op));
}

StagedOps all_ops() {
  StagedOps ops;
  add_reference_ops(ops);
  add_cuda_ops(ops);
  return ops;
}

}  // namespace deltagauge::validate::cp
