// Trial: a case answered by a backend once, and the same case answered in other ways, which must give the same bits. The
// checks determinism and packing and the rungs of the ladder are made of these.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/backend.h"
#include "validate/context.h"
#include "validate/judge.h"
#include "validate/ladder/pieces.h"
#include "validate/ladder/tiles.h"

namespace deltagauge::validate {

class Trial {
 public:
  // With options.taps, intermediates are compared too, in the chunks of the backend's staging.
  Trial(const Context& context, const Backend& backend, const PlanOptions& options);

  const Backend& backend() const { return backend_; }
  const Problem& problem() const { return problem_; }
  const Tensors& inputs() const { return inputs_; }
  const PlanOptions& options() const { return options_; }
  Plan& plan();         // the first plan of the case
  const Tiles& base();  // what its first run gave

  // Each compares with base() and says whether to go on: false after a difference, and where the backend does not support
  // the problem, which makes the verdict a skip unless it is a failure already.
  bool expect_same(const Tensors& answer, std::string_view what);
  bool expect_same(const Problem& problem, const Pieces& pieces, const Tensors& inputs, std::string_view what,
                   Tensors* answer = nullptr);
  bool expect_same(const Backend& other, std::string_view what);
  bool supported(const Backend& backend, const Problem& problem, std::string_view what);

  // The verdict on all of it: a skip where no tile was there to compare.
  Verdict verdict() const;

 private:
  const Backend& backend_;
  const Problem problem_;
  const Tensors& inputs_;
  const PlanOptions options_;
  std::unique_ptr<Plan> plan_;
  std::optional<Tiles> base_;
  Verdict verdict_;
};

Verdict repeat(Trial& trial);         // one plan run again, planned anew, and without taps
Verdict each_separate(Trial& trial);  // each sequence alone

}  // namespace deltagauge::validate
