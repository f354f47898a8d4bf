#include "reports/trace/trace.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"

namespace deltagauge::reports::trace {
namespace {

constexpr std::size_t kNoDetail = 0;

bool is_control(unsigned char c) { return c < 0x20 || c == 0x7f; }

// Bytes that are not UTF-8 become U+FFFD, control bytes blanks.
std::string clean(std::string_view text) {
  std::string out(text);
  if (std::any_of(out.begin(), out.end(), [](unsigned char c) { return c >= 0x80; })) {
    using Json = nlohmann::json;
    out = Json::parse(Json(out).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
  }
  std::replace_if(out.begin(), out.end(), is_control, ' ');
  return out;
}

std::size_t index(TrackId id) { return static_cast<std::size_t>(id); }

}  // namespace

std::size_t Trace::find_or_add(Track track) {
  if (track.parent) {
    if (*track.parent >= tracks_.size()) fail("trace: track '", track.name, "' has a parent of another trace");
    track.depth = tracks_[*track.parent].depth + 1;
  }
  const auto [found, added] = by_name_.try_emplace({track.parent, track.name}, tracks_.size());
  if (!added) {
    const Track& there = tracks_[found->second];
    if (there.kind != track.kind || there.unit != track.unit) {
      fail("trace: '", track.name, "' is already a track of another kind or unit");
    }
    return found->second;
  }
  track.order = static_cast<int>(
      std::count_if(tracks_.begin(), tracks_.end(), [&](const Track& other) { return other.parent == track.parent; }));
  tracks_.push_back(std::move(track));
  states_.emplace_back();
  return tracks_.size() - 1;
}

TrackId Trace::process(std::string_view name) {
  return TrackId{find_or_add({.kind = Track::Kind::process, .name = clean(name), .unit = "", .parent = {}})};
}

TrackId Trace::track(TrackId parent, std::string_view name) {
  return TrackId{find_or_add({.kind = Track::Kind::slices, .name = clean(name), .unit = "", .parent = index(parent)})};
}

CounterId Trace::counter(TrackId parent, std::string_view name, std::string_view unit) {
  if (unit.empty()) fail("trace: counter '", name, "': expected a unit, got an empty one");
  return CounterId{
      find_or_add({.kind = Track::Kind::counter, .name = clean(name), .unit = clean(unit), .parent = index(parent)})};
}

FlowId Trace::new_flow() { return FlowId{++flows_}; }

std::size_t Trace::keep(Detail detail) {
  detail.name = clean(detail.name);
  detail.category = clean(detail.category);
  for (Arg& arg : detail.args) {
    arg.name = arg.name.empty() ? "value" : clean(arg.name);
    if (std::string* text = std::get_if<std::string>(&arg.value)) *text = clean(*text);
  }
  for (const FlowId flow : detail.flows) {
    const auto number = static_cast<std::uint64_t>(flow);
    if (number == 0 || number > flows_) fail("trace: '", detail.name, "' is an end of a flow of another trace");
  }
  details_.push_back(std::move(detail));
  return details_.size() - 1;
}

void Trace::add(Event::Kind kind, std::size_t track, std::int64_t at, std::size_t detail, double value) {
  if (track >= tracks_.size()) fail("trace: an event at ", at, " ns is on a track of another trace");
  if (at < states_[track].last) {
    fail("trace: track '", tracks_[track].name, "': expected a time from ", states_[track].last, " ns on, got ", at);
  }
  states_[track].last = at;
  events_.push_back({kind, track, detail, at, value});
}

void Trace::begin(TrackId track, std::int64_t at, Detail detail) {
  const std::size_t kept = keep(std::move(detail));
  add(Event::Kind::begin, index(track), at, kept, 0);
  states_[index(track)].open.push_back(kept);
}

void Trace::end(TrackId track, std::int64_t at) {
  if (index(track) >= tracks_.size()) fail("trace: end at ", at, " ns on a track of another trace");
  State& state = states_[index(track)];
  if (state.open.empty()) fail("trace: track '", tracks_[index(track)].name, "': end at ", at, " ns, but none is open");
  add(Event::Kind::end, index(track), at, kNoDetail, 0);
  state.open.pop_back();
}

void Trace::slice(TrackId track, std::int64_t begin_at, std::int64_t end_at, Detail detail) {
  if (end_at < begin_at) {
    fail("trace: slice '", detail.name, "': expected an end from ", begin_at, " ns on, got ", end_at);
  }
  begin(track, begin_at, std::move(detail));
  end(track, end_at);
}

void Trace::instant(TrackId track, std::int64_t at, Detail detail) {
  add(Event::Kind::instant, index(track), at, keep(std::move(detail)), 0);
}

void Trace::failure(TrackId track, std::int64_t at, std::string_view case_id, std::string_view reason,
                    std::vector<FlowId> flows) {
  instant(track, at,
          {.name = "fail",
           .category = std::string(kFailCategory),
           .args = {{"case", std::string(case_id)}, {"reason", std::string(reason)}},
           .flows = std::move(flows)});
}

void Trace::sample(CounterId counter, std::int64_t at, double value) {
  if (std::isfinite(value)) add(Event::Kind::sample, static_cast<std::size_t>(counter), at, kNoDetail, value);
}

std::vector<Event> Trace::in_time_order() const {
  for (std::size_t track = 0; track < states_.size(); ++track) {
    if (states_[track].open.empty()) continue;
    fail("trace: track '", tracks_[track].name, "': slice '", details_[states_[track].open.back()].name,
         "' was never ended");
  }
  std::vector<Event> events = events_;
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.at < b.at; });
  return events;
}

bool Trace::drop_deepest_slices() {
  std::size_t deepest = 0, dropped = 0;
  for (const Event& event : events_) {
    if (event.kind != Event::Kind::begin) continue;
    const std::size_t depth = tracks_[event.track].depth;
    dropped = (depth > deepest ? 0 : dropped) + (depth >= deepest);
    deepest = std::max(deepest, depth);
  }
  if (dropped == 0) return false;
  std::erase_if(events_, [&](const Event& event) {
    const bool of_slice = event.kind == Event::Kind::begin || event.kind == Event::Kind::end;
    return of_slice && tracks_[event.track].depth == deepest;
  });
  instant(process("trace"), 0,
          {.name = "slices dropped to keep the file small",
           .category = "metadata",
           .args = {{"slices", static_cast<std::int64_t>(dropped)}, {"depth", static_cast<std::int64_t>(deepest)}}});
  return true;
}

FlowEnds::FlowEnds(const Trace& trace, const std::vector<Event>& events) {
  for (const Event& event : events) {
    if (event.kind != Event::Kind::begin && event.kind != Event::Kind::instant) continue;
    for (const FlowId flow : trace.detail(event).flows) ++counts_[flow].all;
  }
}

FlowEnds::Part FlowEnds::next(FlowId flow) {
  Count& count = counts_.at(flow);
  ++count.seen;
  if (count.all < 2) return Part::none;
  if (count.seen == 1) return Part::first;
  return count.seen == count.all ? Part::last : Part::step;
}

std::string encode_within(const Trace& trace, std::size_t limit, std::string (*encode)(const Trace&)) {
  std::string text = encode(trace);
  if (text.size() <= limit) return text;
  Trace less = trace;
  while (text.size() > limit && less.drop_deepest_slices()) text = encode(less);
  return text;
}

}  // namespace deltagauge::reports::trace
