#include "reports/trace/pftrace.h"

#include <protozero/pbf_builder.hpp>

namespace deltagauge::reports::trace {
namespace {

using Tag = protozero::pbf_tag_type;
template <class Message>
using Builder = protozero::pbf_builder<Message>;

// Field numbers and values of the public schema (protos/perfetto/trace). One enum a message, named as the message.
enum class TraceFile : Tag { packet = 1 };  // message Trace
enum class TracePacket : Tag {
  timestamp = 8,
  trusted_packet_sequence_id = 10,
  track_event = 11,
  sequence_flags = 13,
  track_descriptor = 60,
};
enum class TrackDescriptor : Tag {
  uuid = 1,
  name = 2,
  process = 3,
  parent_uuid = 5,
  counter = 8,
  child_ordering = 11,
  sibling_order_rank = 12,
};
enum class ProcessDescriptor : Tag { pid = 1, process_name = 6 };
enum class CounterDescriptor : Tag { unit_name = 6, y_axis_share_key = 7 };
enum class TrackEvent : Tag {
  debug_annotations = 4,
  type = 9,
  track_uuid = 11,
  categories = 22,
  name = 23,
  double_counter_value = 44,
  flow_ids = 47,
  terminating_flow_ids = 48,
};
enum class DebugAnnotation : Tag { bool_value = 2, int_value = 4, double_value = 5, string_value = 6, name = 10 };

constexpr std::uint32_t kIncrementalStateCleared = 1, kNeedsIncrementalState = 2;  // TracePacket.SequenceFlags

constexpr std::int32_t kExplicit = 3;  // TrackDescriptor.ChildTracksOrdering
constexpr std::uint32_t kSequence = 1;

std::int32_t type_of(Event::Kind kind) {  // TrackEvent.Type
  switch (kind) {
    case Event::Kind::begin:
      return 1;
    case Event::Kind::end:
      return 2;
    case Event::Kind::instant:
      return 3;
    case Event::Kind::sample:
      return 4;
  }
  return 0;
}

std::uint64_t uuid(std::size_t track) { return track + 1; }  // 0 is the implicit global track

void write_track(std::string& out, const Trace& trace, std::size_t index) {
  const Track& track = trace.tracks()[index];
  Builder<TraceFile> file{out};
  Builder<TracePacket> packet{file, TraceFile::packet};
  packet.add_uint32(TracePacket::trusted_packet_sequence_id, kSequence);
  packet.add_uint32(TracePacket::sequence_flags, index == 0 ? kIncrementalStateCleared : kNeedsIncrementalState);
  Builder<TrackDescriptor> descriptor{packet, TracePacket::track_descriptor};
  descriptor.add_uint64(TrackDescriptor::uuid, uuid(index));
  descriptor.add_string(TrackDescriptor::name, track.name);
  if (track.parent) {
    descriptor.add_uint64(TrackDescriptor::parent_uuid, uuid(*track.parent));
    descriptor.add_int32(TrackDescriptor::sibling_order_rank, track.order);
  }
  if (track.kind != Track::Kind::counter) descriptor.add_enum(TrackDescriptor::child_ordering, kExplicit);
  if (track.kind == Track::Kind::process) {
    Builder<ProcessDescriptor> process{descriptor, TrackDescriptor::process};
    process.add_int32(ProcessDescriptor::pid, static_cast<std::int32_t>(uuid(index)));
    process.add_string(ProcessDescriptor::process_name, track.name);
  } else if (track.kind == Track::Kind::counter) {
    Builder<CounterDescriptor> counter{descriptor, TrackDescriptor::counter};
    counter.add_string(CounterDescriptor::unit_name, track.unit);
    counter.add_string(CounterDescriptor::y_axis_share_key, track.unit);
  }
}

void write_value(Builder<DebugAnnotation>& annotation, bool value) {
  annotation.add_bool(DebugAnnotation::bool_value, value);
}
void write_value(Builder<DebugAnnotation>& annotation, std::int64_t value) {
  annotation.add_int64(DebugAnnotation::int_value, value);
}
void write_value(Builder<DebugAnnotation>& annotation, double value) {
  annotation.add_double(DebugAnnotation::double_value, value);
}
void write_value(Builder<DebugAnnotation>& annotation, const std::string& value) {
  annotation.add_string(DebugAnnotation::string_value, value);
}

void write_detail(Builder<TrackEvent>& out, const Detail& detail, FlowEnds& ends) {
  out.add_string(TrackEvent::name, detail.name);
  if (!detail.category.empty()) out.add_string(TrackEvent::categories, detail.category);
  for (const Arg& arg : detail.args) {
    Builder<DebugAnnotation> annotation{out, TrackEvent::debug_annotations};
    annotation.add_string(DebugAnnotation::name, arg.name);
    std::visit([&](const auto& value) { write_value(annotation, value); }, arg.value);
  }
  for (const FlowId flow : detail.flows) {
    const FlowEnds::Part part = ends.next(flow);
    if (part == FlowEnds::Part::none) continue;
    out.add_fixed64(part == FlowEnds::Part::last ? TrackEvent::terminating_flow_ids : TrackEvent::flow_ids,
                    static_cast<std::uint64_t>(flow));
  }
}

void write_event(std::string& out, const Trace& trace, const Event& event, FlowEnds& ends) {
  Builder<TraceFile> file{out};
  Builder<TracePacket> packet{file, TraceFile::packet};
  packet.add_uint64(TracePacket::timestamp, static_cast<std::uint64_t>(event.at));
  packet.add_uint32(TracePacket::trusted_packet_sequence_id, kSequence);
  packet.add_uint32(TracePacket::sequence_flags, kNeedsIncrementalState);
  Builder<TrackEvent> body{packet, TracePacket::track_event};
  body.add_enum(TrackEvent::type, type_of(event.kind));
  body.add_uint64(TrackEvent::track_uuid, uuid(event.track));
  if (event.kind == Event::Kind::sample) body.add_double(TrackEvent::double_counter_value, event.value);
  if (event.kind == Event::Kind::begin || event.kind == Event::Kind::instant) {
    write_detail(body, trace.detail(event), ends);
  }
}

std::string encode(const Trace& trace) {
  std::string out;
  for (std::size_t track = 0; track < trace.tracks().size(); ++track) write_track(out, trace, track);
  const std::vector<Event> events = trace.in_time_order();
  FlowEnds ends(trace, events);
  for (const Event& event : events) write_event(out, trace, event, ends);
  return out;
}

}  // namespace

std::string to_pftrace(const Trace& trace, std::size_t limit) { return encode_within(trace, limit, encode); }

}  // namespace deltagauge::reports::trace
