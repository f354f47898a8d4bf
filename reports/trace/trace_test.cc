// The builder refuses what no viewer could draw.
#include "reports/trace/trace.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "reports/trace/pftrace.h"

namespace deltagauge::reports::trace {
namespace {

template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class Building : public testing::Test {
 protected:
  Trace trace;
  TrackId process = trace.process("host");
  TrackId track = trace.track(process, "verdicts");
};

TEST_F(Building, TracksAreFoundByTheirNameUnderTheirParent) {
  EXPECT_EQ(trace.track(process, "verdicts"), track);
  EXPECT_NE(trace.track(track, "verdicts"), track);
  EXPECT_EQ(trace.process("host"), process);
  EXPECT_EQ(trace.tracks().size(), 3u);
}

TEST_F(Building, TimeOnATrackNeverGoesBack) {
  trace.slice(track, 10, 20, {.name = "a"});
  EXPECT_EQ(error_of([&] { trace.begin(track, 19, {.name = "b"}); }),
            "trace: track 'verdicts': expected a time from 20 ns on, got 19");
  EXPECT_THROW(trace.instant(track, 19, {.name = "b"}), Error);
  EXPECT_THROW(trace.slice(track, 30, 29, {.name = "b"}), Error);
  EXPECT_THROW(trace.begin(process, -1, {.name = "b"}), Error);
  trace.slice(process, 0, 1, {.name = "another track has its own time"});
  EXPECT_EQ(trace.in_time_order().size(), 4u) << "what was refused left nothing behind";
}

TEST_F(Building, SlicesCloseInsideOut) {
  EXPECT_THROW(trace.end(track, 0), Error);
  trace.begin(track, 0, {.name = "outer"});
  trace.begin(track, 0, {.name = "inner"});
  trace.end(track, 5);
  EXPECT_EQ(error_of([&] { to_pftrace(trace); }), "trace: track 'verdicts': slice 'outer' was never ended");
  trace.end(track, 5);
  EXPECT_THROW(trace.end(track, 5), Error);
  EXPECT_EQ(trace.in_time_order().size(), 4u);
}

TEST_F(Building, ACounterHasOneUnit) {
  const CounterId counter = trace.counter(process, "clock", "MHz");
  EXPECT_EQ(trace.counter(process, "clock", "MHz"), counter);
  EXPECT_THROW(trace.counter(process, "clock", "GHz"), Error);
  EXPECT_THROW(trace.counter(process, "temperature", ""), Error);
  EXPECT_THROW(trace.counter(process, "verdicts", "x"), Error);
}

TEST_F(Building, IdsOfAnotherTraceAreRefused) {
  EXPECT_THROW(trace.track(TrackId{9}, "a"), Error);
  EXPECT_THROW(trace.instant(TrackId{9}, 0, {.name = "a"}), Error);
  EXPECT_THROW(trace.begin(TrackId{9}, 0, {.name = "a"}), Error);
  EXPECT_THROW(trace.end(TrackId{9}, 0), Error);
  EXPECT_THROW(trace.sample(CounterId{9}, 0, 1), Error);
  EXPECT_THROW(trace.instant(track, 0, {.name = "a", .flows = {FlowId{1}}}), Error);
}

TEST_F(Building, EventsComeSortedByTimeAndAsCalledWithinATrack) {
  trace.slice(track, 5, 5, {.name = "a"});
  trace.slice(track, 5, 7, {.name = "b"});
  trace.slice(process, 0, 6, {.name = "c"});
  std::string order;
  for (const Event& event : trace.in_time_order()) {
    order += event.kind == Event::Kind::begin ? trace.detail(event).name : "/";
  }
  EXPECT_EQ(order, "ca/b//");
}

}  // namespace
}  // namespace deltagauge::reports::trace
