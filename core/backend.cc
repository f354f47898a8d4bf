#include "core/backend.h"

#include "core/error.h"

namespace deltagauge {

bool glob_match(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

void Registry::add(std::unique_ptr<Backend> backend) {
  for (const auto& b : backends_)
    if (b->name() == backend->name()) fail("registry: backend '", backend->name(), "' is already there");
  backends_.push_back(std::move(backend));
}

std::vector<const Backend*> Registry::match(std::string_view glob) const {
  std::vector<const Backend*> found;
  for (const auto& backend : backends_) {
    std::string_view rest = glob;
    for (;;) {
      const auto comma = rest.find(',');
      if (glob_match(rest.substr(0, comma), backend->name())) {
        found.push_back(backend.get());
        break;
      }
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  return found;
}

const Backend& Registry::get(std::string_view name) const {
  std::string known;
  for (const auto& backend : backends_) {
    if (backend->name() == name) return *backend;
    known += " " + std::string(backend->name());
  }
  fail("backend: expected one of", known, ", got '", name, "'");
}

}  // namespace deltagauge
