// What a sharded run computed, by digests that do not know who computed it: one a (document, canonical segment, stage,
// head).
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cp/plan.h"
#include "validate/cp/sharded.h"

namespace deltagauge::validate::cp {

// In the order in which one follows from the other.
enum class Stage { Ainv, bias, transition, entry, v_new, o, exit };
std::string_view name(Stage stage);

struct StagePlace {
  std::int64_t document = 0, segment = 0;
  Stage stage = Stage::Ainv;
  std::int64_t head = 0;
  friend auto operator<=>(const StagePlace&, const StagePlace&) = default;
};
using Digests = std::map<StagePlace, std::string>;

// Of a canonical plan, with the taps that the answers have. The maps of a document's last segment are left out: nobody needs
// them.
Digests digests_of(const kernels::cp::Plan& plan, const std::vector<RankAnswer>& ranks);

// The first place, by document, segment, stage and head, where the two differ or only one has an entry; in words.
std::optional<std::string> first_difference(const kernels::cp::Plan& plan, const Digests& got, const Digests& want);

}  // namespace deltagauge::validate::cp
