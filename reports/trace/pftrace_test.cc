// The protobuf library decodes what pftrace.cc encodes, and the rules of TrackEvent traces hold.
#include "reports/trace/pftrace.h"

#include <gtest/gtest.h>
#include <perfetto_subset.pb.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "reports/file.h"
#include "reports/sample_report.h"
#include "reports/trace/from_report.h"
#include "reports/trace/sample_trace.h"

namespace deltagauge::reports::trace {
namespace {

namespace pb = perfetto_subset;

pb::Trace decode(const std::string& bytes) {
  pb::Trace trace;
  EXPECT_TRUE(trace.ParseFromString(bytes));
  pb::Trace known = trace;
  known.DiscardUnknownFields();
  EXPECT_EQ(known.ByteSizeLong(), trace.ByteSizeLong()) << "fields that the schema does not have";
  return trace;
}

std::vector<pb::TrackEvent> events_of(const pb::Trace& trace) {
  std::vector<pb::TrackEvent> events;
  for (const pb::TracePacket& packet : trace.packet()) {
    if (packet.has_track_event()) events.push_back(packet.track_event());
  }
  return events;
}

std::vector<pb::TrackEvent> named(const pb::Trace& trace, const std::string& name) {
  std::vector<pb::TrackEvent> found;
  for (const pb::TrackEvent& event : events_of(trace)) {
    if (event.name() == name) found.push_back(event);
  }
  return found;
}

std::string text_arg(const pb::TrackEvent& event, const std::string& name) {
  for (const pb::DebugAnnotation& arg : event.debug_annotations()) {
    if (arg.name() == name) return arg.string_value();
  }
  return "";
}

std::map<std::uint64_t, pb::TrackDescriptor> tracks_of(const pb::Trace& trace) {
  std::map<std::uint64_t, pb::TrackDescriptor> tracks;
  for (const pb::TracePacket& packet : trace.packet()) {
    if (packet.has_track_descriptor()) tracks[packet.track_descriptor().uuid()] = packet.track_descriptor();
  }
  return tracks;
}

void expect_declared_tracks(const pb::Trace& trace) {
  const auto tracks = tracks_of(trace);
  EXPECT_FALSE(tracks.contains(0));
  std::set<std::pair<std::uint64_t, std::int32_t>> ranks;
  for (const auto& [uuid, track] : tracks) {
    EXPECT_FALSE(track.name().empty());
    EXPECT_NE(track.has_parent_uuid(), track.has_process()) << track.name();
    if (track.has_process()) {
      EXPECT_GT(track.process().pid(), 0);
    }
    if (track.has_parent_uuid()) {
      ASSERT_TRUE(tracks.contains(track.parent_uuid())) << track.name();
      EXPECT_EQ(tracks.at(track.parent_uuid()).child_ordering(), pb::TrackDescriptor::EXPLICIT);
      EXPECT_TRUE(ranks.emplace(track.parent_uuid(), track.sibling_order_rank()).second) << track.name();
    }
    if (track.has_counter()) {
      EXPECT_FALSE(track.counter().unit_name().empty()) << track.name();
    }
  }
  for (const pb::TrackEvent& event : events_of(trace)) {
    ASSERT_TRUE(tracks.contains(event.track_uuid()));
    EXPECT_EQ(tracks.at(event.track_uuid()).has_counter(), event.type() == pb::TrackEvent::TYPE_COUNTER);
    EXPECT_EQ(event.has_double_counter_value(), event.type() == pb::TrackEvent::TYPE_COUNTER);
  }
}

void expect_ordered_sequence(const pb::Trace& trace) {
  ASSERT_GT(trace.packet_size(), 0);
  std::uint64_t last = 0;
  for (int i = 0; i < trace.packet_size(); ++i) {
    const pb::TracePacket& packet = trace.packet(i);
    EXPECT_EQ(packet.trusted_packet_sequence_id(), 1u);
    EXPECT_EQ(packet.sequence_flags(), i == 0 ? 1u : 2u);
    if (!packet.has_track_event()) continue;
    EXPECT_GE(packet.timestamp(), last);
    last = packet.timestamp();
  }
}

void expect_nested_slices(const pb::Trace& trace) {
  std::map<std::uint64_t, int> open;
  for (const pb::TrackEvent& event : events_of(trace)) {
    if (event.type() == pb::TrackEvent::TYPE_SLICE_BEGIN) ++open[event.track_uuid()];
    if (event.type() == pb::TrackEvent::TYPE_SLICE_END) {
      EXPECT_GE(--open[event.track_uuid()], 0);
    }
  }
  for (const auto& [track, slices] : open) EXPECT_EQ(slices, 0) << tracks_of(trace).at(track).name();
}

// Returns the number of flows.
std::size_t expect_whole_flows(const pb::Trace& trace) {
  std::map<std::uint64_t, int> ends;
  std::set<std::uint64_t> terminated;
  for (const pb::TrackEvent& event : events_of(trace)) {
    for (const std::uint64_t flow : event.flow_ids()) {
      EXPECT_FALSE(terminated.contains(flow));
      ++ends[flow];
    }
    for (const std::uint64_t flow : event.terminating_flow_ids()) {
      EXPECT_TRUE(terminated.insert(flow).second);
      ++ends[flow];
    }
  }
  for (const auto& [flow, count] : ends) EXPECT_GE(count, 2) << flow;
  EXPECT_EQ(terminated.size(), ends.size());
  return ends.size();
}

std::size_t expect_rules(const pb::Trace& trace) {
  expect_declared_tracks(trace);
  expect_ordered_sequence(trace);
  expect_nested_slices(trace);
  return expect_whole_flows(trace);
}

TEST(Pftrace, OfEverythingDecodesAndKeepsTheRules) {
  const pb::Trace trace = decode(to_pftrace(sample_trace()));
  EXPECT_EQ(expect_rules(trace), 1u) << "the flow with one end is left out";
  const auto replay = named(trace, "replay").at(1);
  ASSERT_EQ(replay.debug_annotations_size(), 3);
  EXPECT_EQ(replay.debug_annotations(0).int_value(), 1);
  EXPECT_TRUE(replay.debug_annotations(1).bool_value());
  EXPECT_EQ(replay.debug_annotations(2).double_value(), 0.5);
  EXPECT_EQ(named(trace, "graph").at(0).categories(0), "cuda");
  int samples = 0;
  for (const pb::TrackEvent& event : events_of(trace)) samples += event.has_double_counter_value();
  EXPECT_EQ(samples, 5) << "the one that is not finite is left out";
}

TEST(Pftrace, FailuresCarryTheirCaseAndReason) {
  const pb::TrackEvent failure = named(decode(to_pftrace(sample_trace())), "fail").at(0);
  EXPECT_EQ(failure.type(), pb::TrackEvent::TYPE_INSTANT);
  EXPECT_EQ(failure.categories(0), kFailCategory);
  EXPECT_EQ(text_arg(failure, "case"), kFailedCase);
  EXPECT_EQ(text_arg(failure, "reason"), "o: row ratio 9.5 is over 9");
}

TEST(Pftrace, OfTheSameCallsHasTheSameBytes) { EXPECT_EQ(to_pftrace(sample_trace()), to_pftrace(sample_trace())); }

TEST(Pftrace, HostileNamesStayDecodableAndWithoutControlBytes) {
  Trace trace;
  const TrackId process = trace.process(kHostile), track = trace.track(process, kHostile);
  trace.sample(trace.counter(track, kHostile, kHostile), 0, 1);
  trace.slice(track, 0, 1, {kHostile, kHostile, {{kHostile, kHostile}, {"", kHostile}}, {}});
  const pb::Trace decoded = decode(to_pftrace(trace));
  expect_rules(decoded);
  std::string text;
  for (const auto& [uuid, descriptor] : tracks_of(decoded)) text += descriptor.name();
  for (const pb::TrackEvent& event : events_of(decoded)) {
    text += event.name();
    for (const pb::DebugAnnotation& arg : event.debug_annotations()) {
      EXPECT_FALSE(arg.name().empty());
      text += arg.name() + arg.string_value();
    }
  }
  for (const unsigned char c : text) EXPECT_TRUE(c >= 0x20 && c != 0x7f);
}

TEST(Pftrace, OverTheLimitDropsTheDeepestSlicesAndSaysSo) {
  const Trace whole = sample_trace();
  const std::size_t size = to_pftrace(whole).size();
  const pb::Trace less = decode(to_pftrace(whole, size - 1));
  expect_rules(less);
  EXPECT_TRUE(named(less, "Ainv").empty());
  EXPECT_EQ(named(less, "chunk").size(), 3u);
  const pb::TrackEvent note = named(less, "slices dropped to keep the file small").at(0);
  EXPECT_EQ(note.categories(0), "metadata");
  EXPECT_EQ(note.debug_annotations(0).int_value(), 24);

  const pb::Trace least = decode(to_pftrace(whole, 0));
  EXPECT_EQ(expect_rules(least), 0u) << "its slices went, so the flow went";
  EXPECT_TRUE(named(least, "replay").empty());
  EXPECT_EQ(named(least, "fail").size(), 1u) << "failures stay";
}

TEST(Pftrace, OfAReportShowsItsFailuresAndTimings) {
  const Report report = sample_report();
  const pb::Trace trace = decode(to_pftrace(trace_of(report)));
  std::multiset<std::string> failed, errors, want_failed, want_errors;
  for (const pb::TrackEvent& event : named(trace, "fail")) failed.insert(text_arg(event, "case"));
  for (const pb::TrackEvent& event : named(trace, "error")) errors.insert(text_arg(event, "case"));
  std::size_t timed = 0, samples = 0;
  for (const Result& result : report.results) {
    if (result.outcome == Outcome::fail) want_failed.insert(result.test);
    if (result.outcome == Outcome::error) want_errors.insert(result.test);
    timed += result.timing.has_value();
    samples += result.timing ? result.timing->samples.size() : 0;
  }
  EXPECT_EQ(failed, want_failed);
  EXPECT_EQ(errors, want_errors);
  EXPECT_EQ(expect_rules(trace), timed) << "a flow a timed row";
  EXPECT_EQ(named(trace, std::to_string(sample_timing().calls) + " calls").size(), samples);
  std::set<std::string> units, processes;
  for (const auto& [uuid, track] : tracks_of(trace)) {
    if (track.has_counter()) units.insert(track.counter().unit_name());
    if (track.has_process()) processes.insert(track.process().process_name());
  }
  EXPECT_EQ(processes, (std::set<std::string>{"host", "NVIDIA H200"}));
  for (const char* unit : {"x budget", "TB/s", "MHz", "W", "us"}) EXPECT_TRUE(units.contains(unit)) << unit;
}

// "host / backend / replays"
std::string path_of(const std::map<std::uint64_t, pb::TrackDescriptor>& tracks, std::uint64_t uuid) {
  const pb::TrackDescriptor& track = tracks.at(uuid);
  return track.has_parent_uuid() ? path_of(tracks, track.parent_uuid()) + " / " + track.name() : track.name();
}

// A line a slice, in order: its track's path, then the names of the slices it lies in and its own.
std::vector<std::string> nested_slices(const pb::Trace& trace) {
  const auto tracks = tracks_of(trace);
  std::map<std::uint64_t, std::vector<std::string>> open;
  std::vector<std::string> lines;
  for (const pb::TrackEvent& event : events_of(trace)) {
    std::vector<std::string>& stack = open[event.track_uuid()];
    if (event.type() == pb::TrackEvent::TYPE_SLICE_END) stack.pop_back();
    if (event.type() != pb::TrackEvent::TYPE_SLICE_BEGIN) continue;
    stack.push_back(event.name());
    lines.push_back(path_of(tracks, event.track_uuid()) + ":");
    for (const std::string& name : stack) lines.back() += " " + name;
  }
  return lines;
}

// By flow: the names of its ends in order; the terminating one in brackets.
std::map<std::uint64_t, std::string> flows_of(const pb::Trace& trace) {
  std::map<std::uint64_t, std::string> flows;
  for (const pb::TrackEvent& event : events_of(trace)) {
    for (const std::uint64_t flow : event.flow_ids()) flows[flow] += event.name() + " ";
    for (const std::uint64_t flow : event.terminating_flow_ids()) flows[flow] += "[" + event.name() + "]";
  }
  return flows;
}

Report replay_report() {
  Report report = sample_report();
  report.results = {sample_replay()};
  return report;
}

TEST(Pftrace, OfAReplayNestsItsStagesAndTiesCaptureReplayAndVerdict) {
  const pb::Trace trace = decode(to_pftrace(trace_of(replay_report())));
  EXPECT_EQ(expect_rules(trace), 2u) << "a flow a replay";
  const std::string row = "host / cuda.gdn.chunk_sm80: ", on = "host / cuda.gdn.chunk_sm80 / replays: ";
  const std::string kernel = "NVIDIA H200 / cuda.gdn.chunk_sm80 / kernels: run";
  std::vector<std::string> want = {row + "gdn fwd: replay", on + "inputs", on + "capture"};
  for (int replay = 0; replay < 2; ++replay) {
    want.push_back(on + "replay");
    want.push_back(on + "replay load");
    want.push_back(kernel);
    for (const char* stage : {"run", "read back", "judge", "judge compare"}) want.push_back(on + "replay " + stage);
  }
  EXPECT_EQ(nested_slices(trace), want);
  std::multiset<std::string> flows;
  for (const auto& [flow, ends] : flows_of(trace)) flows.insert(ends);
  EXPECT_EQ(flows, (std::multiset<std::string>{"capture replay run [judge]", "capture replay run judge [fail]"}));
  EXPECT_EQ(text_arg(named(trace, "replay").at(1), "detail"), "partial after full");
  EXPECT_EQ(text_arg(named(trace, "replay").at(1), "reason"), "o: differs");
}

std::vector<double> active_tokens_of(const pb::Trace& trace) {
  const auto tracks = tracks_of(trace);
  std::vector<double> tokens;
  for (const pb::TrackEvent& event : events_of(trace)) {
    if (tracks.at(event.track_uuid()).name() != "active_tokens") continue;
    EXPECT_EQ(tracks.at(event.track_uuid()).counter().unit_name(), "tokens");
    tokens.push_back(event.double_counter_value());
  }
  return tokens;
}

TEST(Pftrace, OfAReplayCountsItsActiveTokens) {
  EXPECT_EQ(active_tokens_of(decode(to_pftrace(trace_of(replay_report())))), (std::vector<double>{129, 65}));
}

// The file that --trace writes.
pb::Trace traced(const std::string& command) {
  const std::string file = testing::TempDir() + "trace_" + std::to_string(::getpid()) + ".pftrace";
  const std::string line = "OMP_NUM_THREADS=1 " DELTAGAUGE_BINARY " " + command +
                           " --case gdn/fwd/len=5+0+3,HK=1,HV=2,K=8,V=4/bf16/seed=3 --backend reference.recurrent --trace " +
                           file + " >" + file + ".out";
  EXPECT_EQ(std::system(line.c_str()), 0) << command;
  const pb::Trace trace = decode(read_file(file));
  for (const std::string& path : {file, file + ".out"}) std::filesystem::remove(path);
  return trace;
}

TEST(Pftrace, OfACommandKeepsTheRules) {
  const pb::Trace replay = traced("replay");
  EXPECT_EQ(expect_rules(replay), 82u) << "a flow a replay";
  for (const auto& [flow, ends] : flows_of(replay)) EXPECT_EQ(ends, "capture replay [judge]");
  EXPECT_EQ(active_tokens_of(replay).size(), 82u);
  const pb::Trace validate = traced("validate");
  EXPECT_EQ(expect_rules(validate), 0u);
  EXPECT_EQ(named(validate, "oracle").size(), 1u);
  const pb::Trace bench = traced("bench --min-time 0.01 --max-time 0.05");
  EXPECT_EQ(expect_rules(bench), 1u) << "a flow a timed row";
  EXPECT_EQ(named(bench, "samples").size(), 1u);
}

TEST(Pftrace, OfARowShowsItsStages) {
  Report report = sample_report();
  report.results.resize(1);
  EXPECT_EQ(nested_slices(decode(to_pftrace(trace_of(report)))),
            (std::vector<std::string>{"host / cuda.gdn.chunk_sm80: qwen3-next: accuracy",
                                      "host / cuda.gdn.chunk_sm80 / stages: inputs",
                                      "host / cuda.gdn.chunk_sm80 / stages: judge"}));
}

TEST(Pftrace, OfSpansThatDoNotNestKeepsTheRules) {
  Report report = replay_report();
  const double times[] = {NAN, -1, INFINITY, 0x1p1000, 0, 0x1p-8};
  for (std::size_t shift = 0; shift < std::size(times); ++shift) {
    Result row = sample_replay();
    for (std::size_t i = 0; i < row.spans.size(); ++i) {
      row.spans[i].start = times[(i + shift) % std::size(times)];
      row.spans[i].seconds = times[(3 * i + shift) % std::size(times)];
      row.spans[i].device_seconds = times[(2 * i + shift) % std::size(times)];
      row.spans[i].depth = static_cast<std::int64_t>((5 * i + shift) % 4) - 1;
      if (i % 5 == shift) row.spans[i].name = "capture";
    }
    report.results.push_back(row);
  }
  report.results.push_back(sample_replay());
  expect_rules(decode(to_pftrace(trace_of(report))));
}

TEST(Pftrace, OfAHostileReportKeepsTheRules) {
  Report report = sample_report();
  for (const double seconds : std::vector<double>{INFINITY, -1, NAN, 0x1p1000}) {
    for (Result result : sample_report().results) {
      result.seconds = seconds;
      result.test = result.reason = result.backend = result.check = result.name = kHostile;
      if (result.timing) result.timing->samples = {seconds, -seconds}, result.timing->median = 0;
      report.results.push_back(result);
    }
  }
  expect_rules(decode(to_pftrace(trace_of(report))));
  EXPECT_TRUE(to_pftrace(trace_of(Report{})).size() > 0);
}

}  // namespace
}  // namespace deltagauge::reports::trace
