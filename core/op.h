// OpInfo: the contract of one operation (docs/math.md): its tensors with shapes and dtypes, and what it costs at least.
// Each op is one file in core/ops/; ops() is the list.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem.h"
#include "core/tensor.h"

namespace deltagauge {

// Heads that stand one after the other along a dimension, width channels each.
struct Section {
  std::int64_t heads, width;
};

struct TensorSpec {
  std::string name;
  DType dtype;
  Shape shape;
  // Rows for judging: the last dimension is a row. token_dim is the dimension that counts tokens (or -1).
  int token_dim = -1;
  // Of an output: the input that it is after the call, in the same memory. Empty: memory of its own.
  std::string in_place_of{};
  // What the last dimension is made of where it packs several tensors, one after the other. Empty: one tensor.
  std::vector<Section> sections{};
};

struct OpInfo {
  std::string_view name, summary;
  std::vector<TensorSpec> (*inputs)(const Problem&);  // in argument order
  std::vector<TensorSpec> (*outputs)(const Problem&);
  double (*flops)(const Problem&);  // fewest floating-point operations of the token recurrence or chunk form, docs/math.md
  double (*bytes)(const Problem&);  // each input read once, each output written once
  bool one_token = false;           // every sequence is one token, row n that of sequence n: there is no cu_seqlens
};

std::span<const OpInfo> ops();
const OpInfo& op_info(std::string_view name);  // throws Error naming the known ops

}  // namespace deltagauge
