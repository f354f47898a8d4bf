// ladder: the same case answered in another way a rung, and every bit must stay (docs/ladder.md). One check, and so one row,
// a rung: ladder.repeat, ladder.permute, ... What does not apply to a case, what a backend does not promise and what it does
// not offer are skips with that reason. A failure names the first tile that differs, in the order of the computation.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "validate/checks/check.h"
#include "validate/ladder/trial.h"

namespace deltagauge::validate {

struct Rung {
  std::string_view check, summary;                            // "ladder.repeat"
  std::optional<std::string> (*not_for)(const Trial& trial);  // why it does not apply, or nothing
  Verdict (*climb)(Trial& trial);

  std::string_view name() const { return check.substr(check.find('.') + 1); }  // "repeat"
};

class Ladder : public Check {
 public:
  explicit Ladder(const Rung& rung) : rung_(rung) {}
  CheckInfo info() const override { return {rung_.check, rung_.summary}; }
  Verdict run(Context& context, const Backend& backend) const override;

 private:
  const Rung& rung_;
};

std::span<const Rung> rungs();

}  // namespace deltagauge::validate
