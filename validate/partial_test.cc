#include "validate/partial.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "reports/json.h"
#include "reports/sample_report.h"

namespace deltagauge::validate {
namespace {

namespace fs = std::filesystem;

struct Folder {
  std::string path = testing::TempDir() + "partial_" + std::to_string(::getpid()) + "/";
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};

TEST(PartialReport, StandsBesideTheReportUntilItIsWhole) {
  const Folder folder;
  const std::string file = folder.path + "report.json";
  PartialReport partial({file}, std::chrono::hours(1));
  reports::Report report = reports::sample_report();
  partial.update(report);
  const std::size_t rows = report.results.size();
  EXPECT_EQ(reports::load_report(file + ".partial").results.size(), rows);
  report.results.pop_back();
  partial.update(report);
  EXPECT_EQ(reports::load_report(file + ".partial").results.size(), rows) << "an hour has not passed";
  partial.remove();
  EXPECT_TRUE(fs::is_empty(folder.path));
}

TEST(PartialReport, IsWrittenAgainAfterItsTime) {
  const Folder folder;
  PartialReport partial({folder.path + "r"}, std::chrono::seconds(0));
  reports::Report report = reports::sample_report();
  partial.update(report);
  report.results.pop_back();
  partial.update(report);
  EXPECT_EQ(reports::load_report(folder.path + "r.partial").results.size(), report.results.size());
}

TEST(PartialReport, ADeviceOrAFifoHasNone) {
  const Folder folder;
  const std::string fifo = folder.path + "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  PartialReport partial({"/dev/null", fifo});
  partial.update(reports::sample_report());
  EXPECT_FALSE(fs::exists("/dev/null.partial"));
  EXPECT_FALSE(fs::exists(fifo + ".partial"));
}

}  // namespace
}  // namespace deltagauge::validate
