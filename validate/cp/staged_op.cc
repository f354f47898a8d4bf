// The reference's stagings as staged ops.
#include "validate/cp/staged_op.h"

#include "kernels/cp/plan.h"
#include "reference/staging.h"

namespace deltagauge::validate::cp {
namespace {

class ReferencePrepared : public Prepared {
 public:
  ReferencePrepared(const Problem& span, const Tensors& inputs, const reference::Staging& staging)
      : prepared_(span, inputs, staging) {}
  DType state_dtype() const override { return prepared_.state_dtype(); }
  Tensor summarise(std::span<const RowRange> ranges) const override { return prepared_.summarise(ranges); }
  Tensors run(const Tensor& entry, bool taps) const override { return prepared_.run(entry, taps); }

 private:
  reference::CpPrepared prepared_;
};

class ReferenceOp : public StagedOp {
 public:
  explicit ReferenceOp(const reference::Staging& staging)
      : name_("reference.cp." + std::string(staging.name)), staging_(staging) {}
  std::string_view name() const override { return name_; }
  std::string_view staging() const override { return staging_.name; }
  std::optional<std::string> unsupported(const Problem& p) const override {
    if (p.op != "gdn") return "op: expected gdn, got " + p.op;
    if (p.direction != Direction::fwd) return "direction: expected fwd, got bwd";
    if (p.slots) return "slots: expected no state pool, got " + std::to_string(p.slots) + " slots";
    if (staging_.accumulate == reference::Accumulate::tensor_core && p.io != DType::bf16 && p.io != DType::f16)
      return "io: expected bf16 or f16, got " + std::string(deltagauge::name(p.io));
    return {};
  }
  Tensors whole(const Problem& problem, const Tensors& inputs) const override {
    return reference::run(problem, inputs, staging_, false);
  }
  std::unique_ptr<Prepared> prepare(const Problem& span, const Tensors& inputs) const override {
    return std::make_unique<ReferencePrepared>(span, inputs, staging_);
  }

 private:
  std::string name_;
  const reference::Staging& staging_;
};

}  // namespace

StagedOps reference_ops() {
  StagedOps ops;
  for (const reference::Staging& staging : reference::stagings())
    if (staging.op == "gdn" && staging.chunk == kernels::cp::kChunk) ops.push_back(std::make_unique<ReferenceOp>(staging));
  return ops;
}

}  // namespace deltagauge::validate::cp
