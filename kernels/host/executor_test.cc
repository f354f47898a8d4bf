// The executor catches what it is there for: faults planted in two small kernels, as wrong sums or as an Error that says
// what.
#include "kernels/host/executor.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "kernels/host/faults.h"

namespace deltagauge::host {
namespace {

Options with(Mode mode, bool races, std::uint64_t seed = 1) { return {.mode = mode, .seed = seed, .races = races}; }

// What a run shows: "" where the sums are right, "wrong sums", or the message.
std::string shown(const Options& options, Fault fault) {
  try {
    return sums_of_tiles(options, fault) == right_sums_of_tiles() ? "" : "wrong sums";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(HostExecutor, RightKernelsGiveRightSumsInEveryModeAndHaveNoRaces) {
  for (const bool races : {false, true})
    for (const Mode mode : {Mode::early, Mode::late, Mode::shuffled})
      for (std::uint64_t seed = 1; seed <= (mode == Mode::shuffled ? 20u : 1u); ++seed)
        EXPECT_EQ(shown(with(mode, races, seed), Fault::none), "") << name(mode) << " " << seed;
}

// In one mode without a look at races, or only by looking.
TEST(HostExecutor, PlantedFaultsAreCaught) {
  const struct {
    const char* name;
    Fault fault;
    Mode mode;
    bool races;
    std::string_view text;  // is part of what is shown
  } rows[] = {
      {"barrier", Fault::barrier, Mode::early, false, "wrong sums"},
      {"barrier", Fault::barrier, Mode::late, true, "read of a bulk store is not ordered behind write"},
      {"proxy fence", Fault::proxy_fence, Mode::late, true, "(no fence.proxy.async between)"},
      {"store wait", Fault::store_wait, Mode::late, false, "wrong sums"},
      {"store wait", Fault::store_wait, Mode::early, true, "is not ordered behind read of a bulk store"},
      {"store done", Fault::store_done, Mode::late, false, "wrong sums"},
      {"flag", Fault::flag, Mode::early, false, "wrong sums"},
      {"overtaken", Fault::overtaken, Mode::late, false, "a thread waits for phase 0, which phase 2 has overtaken"},
      {"parity", Fault::parity, Mode::early, false, "deadlock"},
      {"missing arrival", Fault::missing_arrival, Mode::late, false, "1 of 5 arrivals and 0 bytes to come"},
      {"arrival", Fault::arrival, Mode::late, true, "write of a bulk load is not ordered behind read of wgmma"},
      {"product wait", Fault::product_wait, Mode::late, false, "wrong sums"},
      {"product fence", Fault::product_fence, Mode::early, false, "expected wgmma.fence"},
      {"dependency", Fault::dependency, Mode::early, false, "wrong sums"},
      {"alignment", Fault::alignment, Mode::early, false, "expected an address that is a multiple of 8, got one 4 past"},
  };
  for (const auto& row : rows) {
    const std::string got = shown(with(row.mode, row.races), row.fault);
    EXPECT_NE(got.find(row.text), std::string::npos) << row.name << ": " << got;
  }
}

TEST(HostExecutor, ADeadlockSaysWhatEachWarpWaitsFor) {
  const std::string got = shown(with(Mode::late, false), Fault::missing_arrival);
  for (const std::string_view part : {"deadlock: nobody can go on", "kernel 1 block 0 warp 4 lanes 00000001: mbarrier at",
                                      "parity 0 (phase 0: 1 of 5 arrivals and 0 bytes to come)"})
    EXPECT_NE(got.find(part), std::string::npos) << got;
}

TEST(HostExecutor, AFailureLeavesItFitForTheNextRun) {
  EXPECT_NE(shown(with(Mode::late, false), Fault::missing_arrival), "");
  EXPECT_EQ(shown(with(Mode::late, false), Fault::none), "");
}

TEST(HostExecutor, OptionsAreReadOrRefused) {
  const Options options = parse_options("mode=shuffled,sms=8,seed=3,races=on");
  EXPECT_EQ(options.mode, Mode::shuffled);
  EXPECT_EQ(options.sms, 8);
  EXPECT_EQ(options.seed, 3u);
  EXPECT_TRUE(options.races);
  for (const std::string_view bad : {"mode=never", "sms=0", "sms=x", "seed=", "colour=red", "late"})
    EXPECT_THROW(parse_options(bad), Error) << bad;
}

}  // namespace
}  // namespace deltagauge::host
