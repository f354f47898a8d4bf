// The judge judged, in full: every planted fault caught where it must show, every correct variant passed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <set>

#include "reference/faults.h"
#include "validate/peers.h"
#include "validate/planted.h"
#include "validate/run.h"
#include "validate/thresholds.h"

namespace deltagauge::validate {
namespace {

void expect_every_verdict_right(const Selftest& whole) {
  for (const SelftestRow& row : whole.rows)
    EXPECT_EQ(row.caught, row.fault) << row.variant << " in " << row.regime << " " << row.io << ": row " << row.row_ratio
                                     << ", element " << row.element_ratio << ", " << row.check;
  EXPECT_TRUE(whole.ok());
}

void expect_every_fault_shows_somewhere(const Selftest& whole) {
  std::set<std::string, std::less<>> seen;
  for (const SelftestRow& row : whole.rows) seen.insert(row.variant);
  for (const char* op : {"gdn", "gdn_decode"})
    for (const auto& fault : reference::faults(op)) EXPECT_TRUE(seen.contains(fault.name)) << fault.name;
  for (const auto& fault : memory_faults()) EXPECT_TRUE(seen.contains(fault.name)) << fault.name;
}

// The two thresholds lie between the worst correct variant and the weakest fault, each of which is printed.
void expect_thresholds_to_separate(const Selftest& whole) {
  SelftestRow worst_row, worst_element, weakest;
  double least = HUGE_VAL;
  for (const SelftestRow& row : whole.rows) {
    if (!row.fault && row.row_ratio > worst_row.row_ratio) worst_row = row;
    if (!row.fault && row.element_ratio > worst_element.element_ratio) worst_element = row;
    const double score = std::max(row.row_ratio / kRowRatio, row.element_ratio / kElementRatio);
    if (row.fault && row.check == "accuracy" && score < least) least = score, weakest = row;
  }
  const auto show = [](const char* what, const SelftestRow& r) {
    std::cout << what << ": " << r.variant << " in " << r.regime << " " << r.io << ", row " << r.row_ratio << ", element "
              << r.element_ratio << "\n";
  };
  show("worst correct row", worst_row);
  show("worst correct element", worst_element);
  show("weakest fault", weakest);
  EXPECT_LT(worst_row.row_ratio, kRowRatio);
  EXPECT_LT(worst_element.element_ratio, kElementRatio);
  EXPECT_GT(least, 1);
}

void expect_no_peers_tolerance_to_do_both(const Selftest& whole) {
  for (const Peer& peer : peers()) {
    std::int64_t missed = 0, wrongly = 0;
    for (const SelftestRow& row : whole.rows) {
      if (row.check != "accuracy") continue;
      const bool rejected = std::find(row.peers.begin(), row.peers.end(), peer.name) != row.peers.end();
      missed += row.fault && !rejected;
      wrongly += !row.fault && rejected;
    }
    std::cout << peer.name << ": misses " << missed << " faults, rejects " << wrongly << " correct variants\n";
    EXPECT_GT(missed + wrongly, 0) << peer.name;
  }
}

TEST(Selftest, CatchesEveryFaultPassesEveryCorrectVariantAndNoFixedToleranceDoes) {
  const Selftest whole = selftest("*");
  expect_every_verdict_right(whole);
  expect_every_fault_shows_somewhere(whole);
  expect_thresholds_to_separate(whole);
  expect_no_peers_tolerance_to_do_both(whole);
}

TEST(Selftest, FiltersByVariant) {
  const Selftest some = selftest("zero_row");
  EXPECT_TRUE(some.faults > 0 && some.faults == some.killed);
  for (const SelftestRow& row : some.rows) EXPECT_EQ(row.variant, "zero_row");
  EXPECT_TRUE(selftest("no such thing").rows.empty());
}

}  // namespace
}  // namespace deltagauge::validate
