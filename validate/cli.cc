#include "validate/cli.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"
#include "validate/range.h"
#include "validate/run.h"
#if DELTAGAUGE_HAVE_CUDA
#include "kernels/runtime/device_info.h"
#endif

namespace deltagauge::validate::cli {

Registry all_backends(std::string_view globs, const std::string& host) {
  Registry registry;
  add_cpu_backends(registry);
  add_cuda_backends(registry);
  if (!host.empty()) add_host_backends(registry, host);
  Registry peers;
  add_peer_backends(peers);
  std::istringstream parts{std::string(globs)};
  for (std::string part; std::getline(parts, part, ',');)
    if (registry.match(part).empty() && !peers.match(part).empty()) {
      add_peer_backends(registry);
      break;
    }
  return registry;
}

std::optional<reports::Device> current_device() {
#if DELTAGAUGE_HAVE_CUDA
  if (const auto& d = kernels::runtime::device_query().device)
    return reports::Device{d->name, d->sm, d->sm_count, d->driver, d->runtime, d->clock_mhz, d->memory_mhz};
#endif
  return std::nullopt;
}

void require_known_backends(const std::vector<const Backend*>& known, const std::string& globs) {
  std::vector<std::string_view> names;
  for (const Backend* backend : known) names.push_back(backend->name());
  require_known_backends(names, globs);
}

void require_known_backends(const std::vector<std::string_view>& known, const std::string& globs) {
  std::istringstream parts(globs);
  for (std::string part; std::getline(parts, part, ',');) {
    if (std::ranges::any_of(known, [&](std::string_view name) { return glob_match(part, name); })) continue;
    Registry hosts;
    add_host_backends(hosts, "");
    if (!hosts.match(part).empty()) fail("--backend: '", part, "' matches host.* alone, which validate has with --host HOW");
    std::string names;
    for (const std::string_view name : known) names += " " + std::string(name);
    fail("--backend: '", part, "' matches none of", names);
  }
}

std::string as_text(const Listing& listing) {
  std::vector<std::size_t> widths;
  for (const std::string& column : listing.columns) widths.push_back(column.size());
  for (const auto& row : listing.rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  const auto add = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add(listing.columns);
  for (const auto& row : listing.rows) add(row);
  return text;
}

std::string as_json(const Listing& listing) {
  auto array = nlohmann::ordered_json::array();
  for (const auto& row : listing.rows) {
    auto object = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < row.size(); ++i) object[listing.columns[i]] = row[i];
    array.push_back(object);
  }
  return array.dump(1) + "\n";
}

}  // namespace deltagauge::validate::cli
