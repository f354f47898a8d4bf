// Promises: what a backend says about its own bits, beside core's Backend. A backend that has something to say derives from
// both. One that does not promises every rung of the ladder (docs/ladder.md) and has one schedule.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend.h"

namespace deltagauge::validate {

using Backends = std::vector<std::unique_ptr<Backend>>;  // as a backend owns those that it promises the bits of

class Promises {
 public:
  virtual ~Promises() = default;
  // Why the bits may change on that rung ("permute"), or nothing. A rung that is not promised is a skip with this reason.
  virtual std::optional<std::string> not_promised(std::string_view /*rung*/, const Problem& /*problem*/) const { return {}; }
  // The same kernel under other schedules (static, persistent), and at other degrees of context parallelism: backends that
  // must give the bits of this one. They live as long as this one does.
  virtual std::vector<const Backend*> schedules() const { return {}; }
  virtual std::vector<const Backend*> cp_degrees() const { return {}; }
};

inline std::vector<const Backend*> pointers(const Backends& backends) {
  std::vector<const Backend*> all;
  for (const auto& backend : backends) all.push_back(backend.get());
  return all;
}

// Those of a backend; null where it says nothing.
inline const Promises* promises_of(const Backend& backend) { return dynamic_cast<const Promises*>(&backend); }

}  // namespace deltagauge::validate
