// deltagauge selftest: the kill matrix. Rows are planted faults and correct variants, columns the input regimes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "validate/cli.h"
#include "validate/run.h"

namespace deltagauge::validate::cli {
namespace {

std::string cell(const SelftestRow& row) {
  if (row.fault) return row.caught ? row.check : "SURVIVED";
  return row.caught ? "FAILED " + row.check : "pass";
}

// One table an io dtype. "-" where a variant does not apply to a regime.
std::string matrix(const Selftest& result, const std::string& io) {
  Listing table{{"", io}, {}};
  std::map<std::string, std::size_t> columns, lines;
  for (const SelftestRow& row : result.rows) {
    if (row.io != io) continue;
    if (columns.emplace(row.regime, table.columns.size()).second) table.columns.push_back(row.regime.substr(0, 1));
    if (lines.emplace(row.variant, table.rows.size()).second)
      table.rows.push_back({row.fault ? "fault" : "right", row.variant});
  }
  for (auto& line : table.rows) line.resize(table.columns.size(), "-");
  for (const SelftestRow& row : result.rows)
    if (row.io == io) table.rows[lines[row.variant]][columns[row.regime]] = cell(row);
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const auto& a, const auto& b) { return a[0] < b[0]; });
  return as_text(table);
}

nlohmann::ordered_json number(double x) {
  if (std::isfinite(x)) return x;
  return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

std::string to_json(const Selftest& result) {
  auto rows = nlohmann::ordered_json::array();
  for (const SelftestRow& r : result.rows)
    rows.push_back({{"variant", r.variant},
                    {"regime", r.regime},
                    {"io", r.io},
                    {"fault", r.fault},
                    {"caught", r.caught},
                    {"check", r.check},
                    {"row_ratio", number(r.row_ratio)},
                    {"element_ratio", number(r.element_ratio)},
                    {"peers", r.peers}});
  const nlohmann::ordered_json root = {{"schema", "deltagauge.selftest/1"}, {"faults", result.faults},
                                       {"killed", result.killed},           {"correct", result.correct},
                                       {"passed", result.passed},           {"rows", rows}};
  return root.dump(1) + "\n";
}

// How many faults each peer's fixed tolerance would have rejected, and how many correct variants with them.
std::string peer_lines(const Selftest& result) {
  struct Count {
    std::int64_t faults = 0, correct = 0;
  };
  std::map<std::string, Count> counts;
  for (const SelftestRow& row : result.rows)
    for (const std::string& peer : row.peers) ++(row.fault ? counts[peer].faults : counts[peer].correct);
  std::string text;
  for (const auto& [peer, count] : counts)
    text += fmt::format("{}: would reject {} faults and {} correct variants\n", peer, count.faults, count.correct);
  return text;
}

void print(const Selftest& result) {
  std::vector<std::string> ios, regimes;
  for (const SelftestRow& row : result.rows) {
    if (std::find(ios.begin(), ios.end(), row.io) == ios.end()) ios.push_back(row.io);
    if (std::find(regimes.begin(), regimes.end(), row.regime) == regimes.end()) regimes.push_back(row.regime);
  }
  for (const std::string& regime : regimes) std::cout << regime << "\n";
  for (const std::string& io : ios) std::cout << "\n" << matrix(result, io);
  for (const SelftestRow& row : result.rows)
    if (row.fault != row.caught)
      std::cout << fmt::format("\n{}: {} in {} on {}; worst row {:.3g}, element {:.3g}\n",
                               row.fault ? "a planted fault survived" : "a correct variant failed", row.variant, row.regime,
                               row.io, row.row_ratio, row.element_ratio);
  std::cout << "\n" << peer_lines(result);
  std::cout << fmt::format("{} of {} planted faults caught, {} of {} correct variants passed\n", result.killed,
                           result.faults, result.passed, result.correct);
}

}  // namespace

int selftest(const std::string& filter, bool json) {
  const Selftest result = validate::selftest(filter);
  if (json)
    std::cout << to_json(result);
  else
    print(result);
  if (result.rows.empty()) return 3;
  return result.killed == result.faults && result.passed == result.correct ? 0 : 1;
}

}  // namespace deltagauge::validate::cli
