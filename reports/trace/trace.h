// A trace as data: processes, nested tracks of slices, counters, flows and failures at given times, written as Perfetto
// protobuf (pftrace.h) or Chrome JSON (chrome.h). It reads no clock: times are nanoseconds that the caller measured.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace deltagauge::reports::trace {

enum class TrackId : std::size_t {};  // a process is the track at the top of its tracks
enum class CounterId : std::size_t {};
enum class FlowId : std::uint64_t {};  // ties events together, as capture, replay and verdict; counted from 1

using Value = std::variant<bool, std::int64_t, double, std::string>;
struct Arg {
  std::string name;
  Value value;
};
struct Detail {
  std::string name = {};
  std::string category = {};
  std::vector<Arg> args = {};
  std::vector<FlowId> flows = {};  // those that this slice or instant is an end of
};

struct Track {
  enum class Kind { process, slices, counter };
  Kind kind = Kind::process;
  std::string name, unit;             // unit: of a counter
  std::optional<std::size_t> parent;  // index into Trace::tracks(); a process has none
  std::size_t depth = 0;              // 0 for a process
  int order = 0;                      // among the tracks of the same parent
};

struct Event {
  enum class Kind { begin, end, instant, sample };
  Kind kind = Kind::begin;
  std::size_t track = 0, detail = 0;  // detail: of begin and instant
  std::int64_t at = 0;                // ns
  double value = 0;                   // of a sample
};

inline constexpr std::size_t kDefaultLimit = std::size_t{64} << 20;  // bytes of a written trace
inline constexpr std::string_view kFailCategory = "numerics.fail";

// Filled in any order over tracks; on one track times never go back. All text is kept as UTF-8 without control bytes.
class Trace {
 public:
  // Each finds a track by its name under its parent, or adds it.
  TrackId process(std::string_view name);
  TrackId track(TrackId parent, std::string_view name);
  CounterId counter(TrackId parent, std::string_view name, std::string_view unit);  // one name has one unit
  FlowId new_flow();

  // Slices of one track nest: end closes the innermost. Throws Error when time goes back or nothing is open.
  void begin(TrackId track, std::int64_t at, Detail detail);
  void end(TrackId track, std::int64_t at);
  void slice(TrackId track, std::int64_t begin_at, std::int64_t end_at, Detail detail);
  void instant(TrackId track, std::int64_t at, Detail detail);
  void failure(TrackId track, std::int64_t at, std::string_view case_id, std::string_view reason,
               std::vector<FlowId> flows = {});
  void sample(CounterId counter, std::int64_t at, double value);  // values that are not finite are left out

  const std::vector<Track>& tracks() const { return tracks_; }
  const Detail& detail(const Event& event) const { return details_.at(event.detail); }
  // Sorted by time, for each track in the order of the calls. Throws Error that names a slice left open.
  std::vector<Event> in_time_order() const;

  // Drops all slices of the deepest tracks that have any, with an instant on process "trace" that says how many; false
  // when there are none. Instants and counters stay.
  bool drop_deepest_slices();

 private:
  struct State {
    std::int64_t last = 0;
    std::vector<std::size_t> open;  // details
  };
  std::size_t find_or_add(Track track);
  void add(Event::Kind kind, std::size_t track, std::int64_t at, std::size_t detail, double value);
  std::size_t keep(Detail detail);

  std::vector<Track> tracks_;
  std::map<std::pair<std::optional<std::size_t>, std::string>, std::size_t> by_name_;
  std::vector<State> states_;  // by track
  std::vector<Event> events_;
  std::vector<Detail> details_;
  std::uint64_t flows_ = 0;
};

// Which end of its flow an event is. Asked once for every end, in order of time; a flow with one end counts as none.
class FlowEnds {
 public:
  enum class Part { none, first, step, last };
  FlowEnds(const Trace& trace, const std::vector<Event>& events);
  Part next(FlowId flow);

 private:
  struct Count {
    std::size_t all = 0, seen = 0;
  };
  std::map<FlowId, Count> counts_;
};

// encode(trace), with slices of the deepest tracks dropped until it is no longer than limit or no slice is left.
std::string encode_within(const Trace& trace, std::size_t limit, std::string (*encode)(const Trace&));

}  // namespace deltagauge::reports::trace
