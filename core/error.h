// The one exception type. Expected outcomes (a kernel that does not support a shape, a verdict that fails) are values.
#pragma once
#include <sstream>
#include <stdexcept>
#include <string>

namespace deltagauge {

// Bad input or broken machinery. The text names the flag, JSON path or tensor, what was expected and what was got.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Inputs that the contract of the op leaves without an answer (docs/math.md), or that no kernel could be judged on: what a
// case that expects a refusal must meet. A malformed case is a plain Error.
class Refused : public Error {
 public:
  using Error::Error;
};

// Builds a message from parts and throws it: fail("q: expected rank 3, got ", rank).
template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw Error(text.str());
}
template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw Refused(text.str());
}

}  // namespace deltagauge
