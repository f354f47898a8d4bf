// The kernels of this tree, run on the CPU, against what an H200 gave: where no gate decays, nothing in them is an
// approximation of the device's, so every recorded figure of their outputs must come again to its last digit. A kernel
// whose arithmetic has changed since its rows were recorded fails here.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "reports/json.h"
#include "validate/run.h"

namespace deltagauge::validate {
namespace {

using reports::Outcome, reports::Result;

constexpr std::size_t kRows = 5;  // of a kernel and report, those with the least work

bool is_exact(const Problem& p) { return p.gate.kind == "none" && p.l2norm == Switch::off; }
std::int64_t work(const Problem& p) { return p.rows() * p.HV * p.K * p.V; }

class RecordedOnAnH200 : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(RecordedOnAnH200, TheFiguresOfUngatedCasesComeAgain) {
  const auto [report, kernel] = GetParam();
  Registry registry;
  add_host_backends(registry, "mode=late,sms=132");
  const Backend& backend = registry.get("host." + std::string(kernel));
  const reports::Report recorded =
      reports::load_report(std::string(DELTAGAUGE_SOURCE_DIR) + "/reports/recorded/h200/" + report + ".json");
  std::vector<std::pair<std::int64_t, const Result*>> rows;
  for (const Result& row : recorded.results) {
    if (row.backend != "cuda." + std::string(kernel) || row.check != "accuracy" || row.outcome != Outcome::pass) continue;
    const Problem p = parse_id(row.test).problem;
    if (is_exact(p)) rows.emplace_back(work(p), &row);
  }
  ASSERT_GT(rows.size(), 1u);
  std::ranges::stable_sort(rows, {}, [](const auto& row) { return row.first; });
  rows.resize(std::min(rows.size(), kRows));
  for (const auto& [cost, one] : rows) {
    const Result& row = *one;
    const Case test = parse_id(row.test);
    const Result now =
        run_one({.test = test, .name = {}, .note = {}, .checks = {}, .ceilings = {}}, backend, "accuracy", {});
    ASSERT_EQ(now.outcome, Outcome::pass) << row.test << ": " << now.reason;
    for (const auto& [tensor, on_device] : row.tensors) {
      const auto& here = now.tensors.at(tensor);
      EXPECT_EQ(here.rel_l2, on_device.rel_l2) << row.test << " " << tensor;
      EXPECT_EQ(here.max_abs, on_device.max_abs) << row.test << " " << tensor;
      EXPECT_EQ(here.bias, on_device.bias) << row.test << " " << tensor;
    }
  }
}

std::string named(const testing::TestParamInfo<std::pair<const char*, const char*>>& info) {
  std::string name = std::string(info.param.first) + "_" + info.param.second;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Host, RecordedOnAnH200,
                         testing::Values(std::pair{"accuracy", "gdn.recurrent"}, std::pair{"accuracy", "gdn.chunk_sm80"},
                                         std::pair{"accuracy", "gdn.chunk_sm80_split"},
                                         std::pair{"accuracy", "gdn.chunk_sm90"},
                                         std::pair{"accuracy", "gdn.chunk_sm90_fused"},
                                         std::pair{"accuracy", "gdn.chunk_sm90_segments"}),
                         named);

}  // namespace
}  // namespace deltagauge::validate
