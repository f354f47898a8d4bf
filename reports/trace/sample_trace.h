// A trace with one of everything, for the tests of the writers.
#pragma once
#include <cmath>

#include "reports/trace/trace.h"

namespace deltagauge::reports::trace {

inline constexpr const char* kFailedCase = "gdn/fwd/len=63+65+1,HK=2,HV=4,K=128,V=128/bf16/seed=41";
inline constexpr const char* kHostile = "a\xff\xc3(\x01\n\x7f\"\\</script>\xed\xa0\x80";

inline Trace sample_trace() {
  Trace trace;
  const TrackId host = trace.process("host"), device = trace.process("NVIDIA H200");
  const TrackId verdicts = trace.track(host, "verdicts");
  const TrackId replays = trace.track(device, "replays"), kernels = trace.track(replays, "kernels");
  const TrackId stages = trace.track(kernels, "stages");
  const CounterId tokens = trace.counter(device, "tokens", "tokens");
  const CounterId ratio = trace.counter(replays, "row_ratio", "x budget");
  const FlowId flow = trace.new_flow(), alone = trace.new_flow();

  trace.slice(replays, 100, 1200, {.name = "capture", .flows = {flow}});
  for (std::int64_t replay = 0; replay < 3; ++replay) {
    const std::int64_t at = 2001 + 1000 * replay;
    trace.begin(replays, at, {.name = "replay", .args = {{"T", replay}, {"in place", true}, {"share", 0.5}}});
    trace.begin(replays, at, {.name = "graph", .category = "cuda"});
    trace.slice(kernels, at + 1, at + 401, {.name = "chunk"});
    trace.slice(kernels, at + 401, at + 801, {.name = "output"});
    for (std::int64_t head = 0; head < 8; ++head) trace.slice(stages, at + head, at + head, {.name = "Ainv"});
    trace.sample(tokens, at, 129);
    trace.sample(ratio, at, replay == 1 ? NAN : 0.5);
    trace.end(replays, at + 900);
    trace.end(replays, at + 900);
  }
  trace.slice(replays, 6000, 6500, {.name = "checked replay", .flows = {flow, alone}});
  trace.begin(verdicts, 6500, {.name = kHostile, .category = kHostile, .args = {{kHostile, kHostile}, {"", INFINITY}}});
  trace.failure(verdicts, 7000, kFailedCase, "o: row ratio 9.5 is over 9", {flow});
  trace.end(verdicts, 7000);
  return trace;
}

}  // namespace deltagauge::reports::trace
