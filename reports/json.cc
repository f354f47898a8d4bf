#include "reports/json.h"

#include <cmath>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_text.h"
#include "reports/file.h"

namespace deltagauge::reports {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::string_view kSchema = "deltagauge.report/1";

// ---- writer

Json number(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  return x;
}

Json numbers(const std::vector<double>& values) {
  Json out = Json::array();
  for (const double x : values) out.push_back(number(x));
  return out;
}

Json write(const TensorMetrics& m) {
  Json worst = nullptr;
  if (m.worst) worst = {{"index", m.worst->index}, {"got", number(m.worst->got)}, {"want", number(m.worst->want)}};
  Json out = {{"rel_l2", number(m.rel_l2)},
              {"max_abs", number(m.max_abs)},
              {"ulp", {{"p50", number(m.ulp_p50)}, {"p99", number(m.ulp_p99)}, {"max", number(m.ulp_max)}}},
              {"row_ratio", number(m.row_ratio)},
              {"element_ratio", number(m.element_ratio)},
              {"worst_row", number(m.worst_row)},
              {"bias", number(m.bias)},
              {"non_finite", m.non_finite},
              {"worst", worst},
              {"budget", {{"value", number(m.budget)}, {"from", m.budget_from}}}};
  if (m.map)
    out["map"] = {{"heads", m.map->heads},
                  {"blocks", m.map->blocks},
                  {"rows_per_block", m.map->rows_per_block},
                  {"row_ratio", numbers(m.map->row_ratio)}};
  return out;
}

Json write(const StageRange& r) {
  return {{"dtype", r.dtype},   {"min_abs", number(r.min_abs)}, {"max_abs", number(r.max_abs)},
          {"values", r.values}, {"overflows", r.overflows},     {"flushes", r.flushes}};
}

Json write(const Conditions& c) {
  const auto or_null = [](const std::optional<double>& x) { return x ? number(*x) : Json(nullptr); };
  return {{"sm_mhz", or_null(c.sm_mhz)},
          {"memory_mhz", or_null(c.memory_mhz)},
          {"temperature_c", or_null(c.temperature_c)},
          {"power_w", or_null(c.power_w)},
          {"throttle", c.throttle}};
}

// The derived figures are there for readers of the file; parse_report works them out anew.
Json write(const Timing& t) {
  return {{"time", {{"min", number(t.min)}, {"median", number(t.median)}, {"mean", number(t.mean)}, {"p95", number(t.p95)}}},
          {"samples", numbers(t.samples)},
          {"calls", t.calls},
          {"settled", t.settled},
          {"flops", number(t.flops)},
          {"bytes", number(t.bytes)},
          {"floor", number(t.floor)},
          {"active", number(t.active)},
          {"tb_s", number(t.tb_s())},
          {"tflop_s", number(t.tflop_s())},
          {"x_of_floor", number(t.x_of_floor())},
          {"roofline_percent", number(t.roofline_percent())},
          {"conditions", write(t.conditions)}};
}

Json write(const Span& s) {
  Json out = {{"name", s.name}, {"depth", s.depth}, {"start", number(s.start)}, {"seconds", number(s.seconds)}};
  if (s.active_tokens) out["active_tokens"] = *s.active_tokens;
  if (s.device_seconds) out["device_seconds"] = number(*s.device_seconds);
  if (!s.detail.empty()) out["detail"] = s.detail;
  if (!s.reason.empty()) out["reason"] = s.reason;
  return out;
}

Json write(const Result& r) {
  Json tensors = Json::object();
  for (const auto& [name, metrics] : r.tensors) tensors[name] = write(metrics);
  Json out = {{"case", r.test},
              {"name", r.name},
              {"op", r.op},
              {"direction", r.direction},
              {"backend", r.backend},
              {"check", r.check},
              {"outcome", name(r.outcome)},
              {"reason", r.reason},
              {"seconds", number(r.seconds)},
              {"tensors", tensors}};
  if (!r.ranges.empty())
    for (const auto& [stage, range] : r.ranges) out["ranges"][stage] = write(range);
  if (!r.digests.empty()) out["digests"] = r.digests;
  for (const auto& [key, value] : r.values) out["values"][key] = number(value);
  if (r.timing) out["timing"] = write(*r.timing);
  if (!r.repro.empty()) out["repro"] = r.repro;
  for (const Span& span : r.spans) out["spans"].push_back(write(span));
  if (r.shrunk) out["shrunk"] = {{"case", r.shrunk->test}, {"file", r.shrunk->file}};
  if (job_of(r) != own_job(r)) out["job"] = r.job;
  return out;
}

Json write(const Report::Summary& s) {
  return {{"judged", s.judged}, {"passed", s.passed}, {"failed", s.failed}, {"skipped", s.skipped}, {"errors", s.errors}};
}

// ---- reader

// A value and where it stands, for messages.
struct At {
  const Json& value;
  std::string path;
};

template <class... Parts>
[[noreturn]] void bad(const At& at, const Parts&... parts) {
  fail(at.path, ": ", parts...);
}

At member(const At& at, const char* key) {
  const auto found = at.value.find(key);
  if (found == at.value.end()) bad(at, "expected the key \"", key, "\", which is missing");
  return {*found, at.path + "/" + key};
}

std::optional<At> maybe_member(const At& at, const char* key) {
  if (!at.value.contains(key)) return std::nullopt;
  return member(at, key);
}

At object(const At& at, std::initializer_list<std::string_view> keys) {
  if (!at.value.is_object()) bad(at, "expected an object, got ", at.value.type_name());
  for (const auto& [key, value] : at.value.items())
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) bad(at, "unknown key \"", key, "\"");
  return at;
}

std::string text(const At& at) {
  if (!at.value.is_string()) bad(at, "expected a string, got ", at.value.type_name());
  return at.value.get<std::string>();
}

double number(const At& at) {
  if (at.value.is_number()) return at.value.get<double>();
  const std::string word = at.value.is_string() ? at.value.get<std::string>() : std::string();
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (word == "inf") return std::numeric_limits<double>::infinity();
  if (word == "-inf") return -std::numeric_limits<double>::infinity();
  bad(at, "expected a number, \"nan\", \"inf\" or \"-inf\", got ", at.value.dump());
}

std::int64_t integer(const At& at) {
  if (!at.value.is_number_integer() ||
      (at.value.is_number_unsigned() && at.value.get<std::uint64_t>() > std::uint64_t{INT64_MAX}))
    bad(at, "expected a 64-bit integer, got ", at.value.dump());
  return at.value.get<std::int64_t>();
}

int small(const At& at) {
  const std::int64_t x = integer(at);
  if (x < 0 || x > std::numeric_limits<int>::max()) bad(at, "expected an integer from 0 to 2^31-1, got ", x);
  return static_cast<int>(x);
}

template <class F>
auto list(const At& at, F item) {
  if (!at.value.is_array()) bad(at, "expected an array, got ", at.value.type_name());
  std::vector<decltype(item(at))> out;
  for (std::size_t i = 0; i < at.value.size(); ++i) out.push_back(item({at.value[i], at.path + "/" + std::to_string(i)}));
  return out;
}

// The members of an object that maps names to values.
template <class F>
auto dictionary(const At& at, F item) {
  if (!at.value.is_object()) bad(at, "expected an object, got ", at.value.type_name());
  std::map<std::string, decltype(item(at))> out;
  for (const auto& [key, value] : at.value.items()) out[key] = item({value, at.path + "/" + key});
  return out;
}

std::optional<double> number_or_null(const At& at) {
  if (at.value.is_null()) return std::nullopt;
  return number(at);
}

ErrorMap read_map(const At& at) {
  object(at, {"heads", "blocks", "rows_per_block", "row_ratio"});
  ErrorMap map{integer(member(at, "heads")), integer(member(at, "blocks")), integer(member(at, "rows_per_block")),
               list(member(at, "row_ratio"), [](const At& x) { return number(x); })};
  const auto values = static_cast<std::int64_t>(map.row_ratio.size());
  if (map.heads < 0 || map.blocks < 0 ||
      (map.heads == 0 ? values != 0 : values / map.heads != map.blocks || values % map.heads))
    bad(at, "expected heads x blocks = ", map.heads, " x ", map.blocks, " values, got ", values);
  return map;
}

StageRange read_range(const At& at) {
  object(at, {"dtype", "min_abs", "max_abs", "values", "overflows", "flushes"});
  return {text(member(at, "dtype")),     number(member(at, "min_abs")),    number(member(at, "max_abs")),
          integer(member(at, "values")), integer(member(at, "overflows")), integer(member(at, "flushes"))};
}

bool truth(const At& at) {
  if (!at.value.is_boolean()) bad(at, "expected true or false, got ", at.value.type_name());
  return at.value.get<bool>();
}

Timing read_timing(const At& at) {
  object(at, {"time", "samples", "calls", "settled", "flops", "bytes", "floor", "active", "tb_s", "tflop_s", "x_of_floor",
              "roofline_percent", "conditions"});
  Timing t;
  const At time = object(member(at, "time"), {"min", "median", "mean", "p95"});
  t.min = number(member(time, "min"));
  t.median = number(member(time, "median"));
  t.mean = number(member(time, "mean"));
  t.p95 = number(member(time, "p95"));
  t.samples = list(member(at, "samples"), [](const At& x) { return number(x); });
  t.calls = integer(member(at, "calls"));
  t.settled = truth(member(at, "settled"));
  t.flops = number(member(at, "flops"));
  t.bytes = number(member(at, "bytes"));
  t.floor = number(member(at, "floor"));
  t.active = number(member(at, "active"));
  const At now = object(member(at, "conditions"), {"sm_mhz", "memory_mhz", "temperature_c", "power_w", "throttle"});
  t.conditions = {number_or_null(member(now, "sm_mhz")), number_or_null(member(now, "memory_mhz")),
                  number_or_null(member(now, "temperature_c")), number_or_null(member(now, "power_w")),
                  list(member(now, "throttle"), text)};
  return t;
}

Span read_span(const At& at) {
  object(at, {"name", "depth", "start", "seconds", "active_tokens", "device_seconds", "detail", "reason"});
  Span s{.name = text(member(at, "name")),
         .depth = small(member(at, "depth")),
         .start = number(member(at, "start")),
         .seconds = number(member(at, "seconds"))};
  if (const auto tokens = maybe_member(at, "active_tokens")) s.active_tokens = integer(*tokens);
  if (const auto seconds = maybe_member(at, "device_seconds")) s.device_seconds = number(*seconds);
  if (const auto detail = maybe_member(at, "detail")) s.detail = text(*detail);
  if (const auto reason = maybe_member(at, "reason")) s.reason = text(*reason);
  return s;
}

TensorMetrics read_metrics(const At& at) {
  object(at, {"rel_l2", "max_abs", "ulp", "row_ratio", "element_ratio", "worst_row", "bias", "non_finite", "worst", "budget",
              "map"});
  TensorMetrics m;
  m.rel_l2 = number(member(at, "rel_l2"));
  m.max_abs = number(member(at, "max_abs"));
  const At ulp = object(member(at, "ulp"), {"p50", "p99", "max"});
  m.ulp_p50 = number(member(ulp, "p50"));
  m.ulp_p99 = number(member(ulp, "p99"));
  m.ulp_max = number(member(ulp, "max"));
  m.row_ratio = number(member(at, "row_ratio"));
  m.element_ratio = number(member(at, "element_ratio"));
  m.worst_row = number(member(at, "worst_row"));
  m.bias = number(member(at, "bias"));
  m.non_finite = integer(member(at, "non_finite"));
  if (const At worst = member(at, "worst"); !worst.value.is_null()) {
    object(worst, {"index", "got", "want"});
    m.worst = Worst{list(member(worst, "index"), integer), number(member(worst, "got")), number(member(worst, "want"))};
  }
  const At budget = object(member(at, "budget"), {"value", "from"});
  m.budget = number(member(budget, "value"));
  m.budget_from = text(member(budget, "from"));
  if (const auto map = maybe_member(at, "map")) m.map = read_map(*map);
  return m;
}

Outcome read_outcome(const At& at) {
  const std::string word = text(at);
  for (const Outcome outcome : {Outcome::pass, Outcome::fail, Outcome::skip, Outcome::error})
    if (word == name(outcome)) return outcome;
  bad(at, "expected pass, fail, skip or error, got \"", word, "\"");
}

Result read_result(const At& at) {
  object(at, {"case", "name", "op", "direction", "backend", "check", "outcome", "reason", "seconds", "tensors", "ranges",
              "digests", "values", "timing", "repro", "spans", "shrunk", "job"});
  Result r;
  r.test = text(member(at, "case"));
  r.name = text(member(at, "name"));
  r.op = text(member(at, "op"));
  r.direction = text(member(at, "direction"));
  r.backend = text(member(at, "backend"));
  r.check = text(member(at, "check"));
  r.outcome = read_outcome(member(at, "outcome"));
  r.reason = text(member(at, "reason"));
  r.seconds = number(member(at, "seconds"));
  r.tensors = dictionary(member(at, "tensors"), read_metrics);
  if (const auto ranges = maybe_member(at, "ranges")) r.ranges = dictionary(*ranges, read_range);
  if (const auto digests = maybe_member(at, "digests")) r.digests = dictionary(*digests, text);
  if (const auto values = maybe_member(at, "values"))
    r.values = dictionary(*values, [](const At& value) { return number(value); });
  if (const auto timing = maybe_member(at, "timing")) r.timing = read_timing(*timing);
  if (const auto repro = maybe_member(at, "repro")) r.repro = text(*repro);
  if (const auto spans = maybe_member(at, "spans")) r.spans = list(*spans, read_span);
  if (const auto shrunk = maybe_member(at, "shrunk")) {
    object(*shrunk, {"case", "file"});
    r.shrunk = ShrunkCase{text(member(*shrunk, "case")), text(member(*shrunk, "file"))};
  }
  if (const auto job = maybe_member(at, "job")) r.job = text(*job);
  return r;
}

Tool read_tool(const At& at) {
  object(at, {"version", "git_sha", "dirty", "compiler", "cuda_archs"});
  return {text(member(at, "version")), text(member(at, "git_sha")), truth(member(at, "dirty")), text(member(at, "compiler")),
          list(member(at, "cuda_archs"), text)};
}

Device read_device(const At& at) {
  object(at, {"name", "sm", "sm_count", "driver", "runtime", "clocks"});
  const At clocks = object(member(at, "clocks"), {"sm_mhz", "memory_mhz"});
  return {text(member(at, "name")),           small(member(at, "sm")),      small(member(at, "sm_count")),
          small(member(at, "driver")),        small(member(at, "runtime")), small(member(clocks, "sm_mhz")),
          small(member(clocks, "memory_mhz"))};
}

Shard read_shard(const At& at) {
  object(at, {"part", "parts"});
  const Shard shard{integer(member(at, "part")), integer(member(at, "parts"))};
  if (shard.part < 1 || shard.part > shard.parts) bad(at, "expected 1 <= part <= parts, got ", to_string(shard));
  return shard;
}

std::int64_t count(const At& at) {
  const std::int64_t x = integer(at);
  if (x < 0) bad(at, "expected at least 0, got ", x);
  return x;
}

ConfigFile read_config(const At& at) {
  object(at, {"path", "sha256"});
  return {text(member(at, "path")), text(member(at, "sha256"))};
}

}  // namespace

std::string to_json(const Report& report) {
  Json device = nullptr;
  if (const auto& d = report.device)
    device = {{"name", d->name},         {"sm", d->sm},
              {"sm_count", d->sm_count}, {"driver", d->driver},
              {"runtime", d->runtime},   {"clocks", {{"sm_mhz", d->clock_mhz}, {"memory_mhz", d->memory_mhz}}}};
  Json configs = Json::array(), results = Json::array();
  for (const ConfigFile& c : report.configs) configs.push_back({{"path", c.path}, {"sha256", c.sha256}});
  for (const Result& r : report.results) results.push_back(write(r));
  Json roofline = nullptr;
  if (const auto& r = report.roofline)
    roofline = {{"copy_tb_s", number(r->copy_tb_s)}, {"tensor_tflop_s", number(r->tensor_tflop_s)}};
  Json shard = nullptr;
  if (const auto& s = report.shard) shard = {{"part", s->part}, {"parts", s->parts}};
  const Json root = {{"schema", kSchema},
                     {"tool",
                      {{"version", report.tool.version},
                       {"git_sha", report.tool.git_sha},
                       {"dirty", report.tool.dirty},
                       {"compiler", report.tool.compiler},
                       {"cuda_archs", report.tool.cuda_archs}}},
                     {"host", {{"os", report.host.os}, {"cpu", report.host.cpu}, {"threads", report.host.threads}}},
                     {"device", device},
                     {"roofline", roofline},
                     {"started", report.started},
                     {"argv", report.argv},
                     {"configs", configs},
                     {"shard", shard},
                     {"jobs_left", report.jobs_left},
                     {"summary", write(report.summary())},
                     {"results", results}};
  return root.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Report parse_report(std::string_view json, const std::string& path) {
  Json root;
  try {
    check_json_text(json, JsonPath::pointer);
    root = Json::parse(json);
  } catch (const Error& e) {
    fail(path, e.what()[0] == '#' ? "" : ": ", e.what());
  } catch (const Json::exception& e) {
    fail(path, ": not JSON: ", e.what());
  }
  const At at = object({root, path + "#"}, {"schema", "tool", "host", "device", "roofline", "started", "argv", "configs",
                                            "shard", "jobs_left", "summary", "results"});
  if (const At schema = member(at, "schema"); text(schema) != kSchema)
    bad(schema, "expected \"", kSchema, "\", got \"", text(schema), "\"");
  Report report;
  report.tool = read_tool(member(at, "tool"));
  const At host = object(member(at, "host"), {"os", "cpu", "threads"});
  report.host = {text(member(host, "os")), text(member(host, "cpu")), small(member(host, "threads"))};
  if (const At device = member(at, "device"); !device.value.is_null()) report.device = read_device(device);
  if (const auto roofline = maybe_member(at, "roofline"); roofline && !roofline->value.is_null()) {
    object(*roofline, {"copy_tb_s", "tensor_tflop_s"});
    report.roofline = Roofline{number(member(*roofline, "copy_tb_s")), number(member(*roofline, "tensor_tflop_s"))};
  }
  if (const auto started = maybe_member(at, "started")) report.started = text(*started);
  report.argv = list(member(at, "argv"), text);
  report.configs = list(member(at, "configs"), read_config);
  if (const auto shard = maybe_member(at, "shard"); shard && !shard->value.is_null()) report.shard = read_shard(*shard);
  if (const auto left = maybe_member(at, "jobs_left")) report.jobs_left = count(*left);
  report.results = list(member(at, "results"), read_result);
  const At summary = member(at, "summary");
  if (const Json counted = write(report.summary()); summary.value != counted)
    bad(summary, "expected ", counted.dump(), " from the results, got ", summary.value.dump());
  return report;
}

Report load_report(const std::string& path) { return parse_report(read_file(path), path); }

}  // namespace deltagauge::reports
