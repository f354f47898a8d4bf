// The kernels of this tree, run on the CPU, against what an H200 gave: where no gate decays, nothing in them is an
// approximation of the device's, so every recorded figure of their outputs must come again to its last digit. A kernel
// whose arithmetic has changed since its rows were recorded fails here.
#include <gtest/gtest.h>

#include <algorithm>

#include "reports/json.h"
#include "validate/run.h"

namespace deltagauge::validate {
namespace {

using reports::Outcome, reports::Result;

constexpr std::int64_t kMostWork = 1 << 22;  // elements of the state times tokens: half a second
constexpr int kRows = 6;                     // of a kernel and report

bool is_exact(const Problem& p) {
  return p.gate.kind == "none" && p.l2norm == Switch::off && p.rows() * p.HV * p.K * p.V <= kMostWork;
}

class RecordedOnAnH200 : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(RecordedOnAnH200, TheFiguresOfUngatedCasesComeAgain) {
  const auto [report, kernel] = GetParam();
  Registry registry;
  add_host_backends(registry, "mode=late,sms=132");
  const Backend& backend = registry.get("host." + std::string(kernel));
  int rows = 0;
  for (const Result& row :
       reports::load_report(std::string(DELTAGAUGE_SOURCE_DIR) + "/reports/recorded/h200/" + report + ".json").results) {
    if (row.backend != "cuda." + std::string(kernel) || row.check != "accuracy" || row.outcome != Outcome::pass) continue;
    const Case test = parse_id(row.test);
    if (!is_exact(test.problem)) continue;
    const Result now =
        run_one({.test = test, .name = {}, .note = {}, .checks = {}, .ceilings = {}}, backend, "accuracy", {});
    ASSERT_EQ(now.outcome, Outcome::pass) << row.test << ": " << now.reason;
    for (const auto& [tensor, on_device] : row.tensors) {
      const auto& here = now.tensors.at(tensor);
      EXPECT_EQ(here.rel_l2, on_device.rel_l2) << row.test << " " << tensor;
      EXPECT_EQ(here.max_abs, on_device.max_abs) << row.test << " " << tensor;
      EXPECT_EQ(here.bias, on_device.bias) << row.test << " " << tensor;
    }
    if (++rows == kRows) break;
  }
  EXPECT_GT(rows, 1);
}

std::string named(const testing::TestParamInfo<std::pair<const char*, const char*>>& info) {
  std::string name = std::string(info.param.first) + "_" + info.param.second;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

// accuracy.json has rows of gdn.chunk_sm90 as well, of a kernel before this one (reports/recorded/README.md).
INSTANTIATE_TEST_SUITE_P(Host, RecordedOnAnH200,
                         testing::Values(std::pair{"accuracy", "gdn.recurrent"}, std::pair{"accuracy", "gdn.chunk_sm80"},
                                         std::pair{"accuracy", "gdn.chunk_sm80_split"},
                                         std::pair{"accuracy_sm90", "gdn.chunk_sm90"}),
                         named);

}  // namespace
}  // namespace deltagauge::validate
