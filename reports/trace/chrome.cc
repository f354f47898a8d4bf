#include "reports/trace/chrome.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace deltagauge::reports::trace {
namespace {

using Json = nlohmann::ordered_json;

double microseconds(std::int64_t ns) { return static_cast<double>(ns) / 1e3; }

std::size_t process_of(const Trace& trace, std::size_t track) {
  while (trace.tracks()[track].parent) track = *trace.tracks()[track].parent;
  return track;
}

std::string path_below_process(const Trace& trace, std::size_t index) {
  const Track& track = trace.tracks()[index];
  if (!track.parent || track.depth == 1) return track.name;
  return path_below_process(trace, *track.parent) + " / " + track.name;
}

Json at_place(const Trace& trace, std::size_t track, const char* phase) {
  return {{"ph", phase}, {"pid", process_of(trace, track) + 1}, {"tid", track + 1}};
}

Json at_time(const Trace& trace, const Event& event, const char* phase) {
  Json out = at_place(trace, event.track, phase);
  out["ts"] = microseconds(event.at);
  return out;
}

Json write(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}
template <class T>
Json write(const T& value) {
  return value;
}

Json args_of(const Detail& detail) {
  Json out = Json::object();
  for (const Arg& arg : detail.args) {
    out[arg.name] = std::visit([](const auto& value) { return write(value); }, arg.value);
  }
  return out;
}

class Lines {
 public:
  void add(const Json& event) { (text_ += first_ ? "\n" : ",\n") += event.dump(), first_ = false; }
  std::string finish() { return text_ + "\n]}\n"; }

 private:
  std::string text_ = R"({"displayTimeUnit":"ns","traceEvents":[)";
  bool first_ = true;
};

void write_track(Lines& out, const Trace& trace, std::size_t index) {
  const Track& track = trace.tracks()[index];
  if (track.kind == Track::Kind::counter) return;
  const bool is_process = track.kind == Track::Kind::process;
  Json name = at_place(trace, index, "M");
  name["name"] = is_process ? "process_name" : "thread_name";
  name["args"] = {{"name", path_below_process(trace, index)}};
  out.add(name);
  Json order = at_place(trace, index, "M");
  order["name"] = is_process ? "process_sort_index" : "thread_sort_index";
  order["args"] = {{"sort_index", index}};
  out.add(order);
}

void write_flow(Lines& out, const Trace& trace, const Event& event, FlowId flow, FlowEnds::Part part) {
  if (part == FlowEnds::Part::none) return;
  const bool is_last = part == FlowEnds::Part::last;
  Json json = at_time(trace, event, is_last ? "f" : part == FlowEnds::Part::first ? "s" : "t");
  if (is_last) json["bp"] = "e";  // the slice around it, not the next one
  json["id"] = static_cast<std::uint64_t>(flow);
  json["name"] = "flow";
  json["cat"] = "flow";
  out.add(json);
}

void write_event(Lines& out, const Trace& trace, const Event& event, FlowEnds& ends) {
  if (event.kind == Event::Kind::end) return out.add(at_time(trace, event, "E"));
  if (event.kind == Event::Kind::sample) {
    const Track& counter = trace.tracks()[event.track];
    Json json = at_time(trace, event, "C");
    json["name"] = path_below_process(trace, event.track) + " (" + counter.unit + ")";
    json["args"] = {{counter.unit, event.value}};
    return out.add(json);
  }
  const Detail& detail = trace.detail(event);
  Json json = at_time(trace, event, event.kind == Event::Kind::begin ? "B" : "i");
  if (event.kind == Event::Kind::instant) json["s"] = "t";
  json["name"] = detail.name;
  if (!detail.category.empty()) json["cat"] = detail.category;
  json["args"] = args_of(detail);
  out.add(json);
  for (const FlowId flow : detail.flows) write_flow(out, trace, event, flow, ends.next(flow));
}

std::string encode(const Trace& trace) {
  Lines out;
  for (std::size_t track = 0; track < trace.tracks().size(); ++track) write_track(out, trace, track);
  const std::vector<Event> events = trace.in_time_order();
  FlowEnds ends(trace, events);
  for (const Event& event : events) write_event(out, trace, event, ends);
  return out.finish();
}

}  // namespace

std::string to_chrome(const Trace& trace, std::size_t limit) { return encode_within(trace, limit, encode); }

}  // namespace deltagauge::reports::trace
