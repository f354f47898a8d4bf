#include "reports/compare/history.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/error.h"
#include "reports/compare/statistics.h"
#include "reports/file.h"

namespace deltagauge::reports::compare {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<double>& x) { return x ? Json(*x) : Json(nullptr); }

std::string line_of(const HistoryLine& h) {
  const Json json = {{"commit", h.commit},
                     {"date", h.date},
                     {"device", h.device},
                     {"sm", h.sm},
                     {"driver", h.driver},
                     {"case", h.test},
                     {"backend", h.backend},
                     {"check", h.check},
                     {"median", h.median},
                     {"q1", h.q1},
                     {"q3", h.q3},
                     {"samples", h.samples},
                     {"sm_mhz", or_null(h.sm_mhz)},
                     {"memory_mhz", or_null(h.memory_mhz)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

HistoryLine read_line(std::string_view text) {
  const Json json = Json::parse(text);
  const auto clock = [&](const char* key) {
    return json.at(key).is_null() ? std::nullopt : std::optional<double>(json.at(key).get<double>());
  };
  HistoryLine h;
  json.at("commit").get_to(h.commit);
  json.at("date").get_to(h.date);
  json.at("device").get_to(h.device);
  json.at("sm").get_to(h.sm);
  json.at("driver").get_to(h.driver);
  json.at("case").get_to(h.test);
  json.at("backend").get_to(h.backend);
  json.at("check").get_to(h.check);
  json.at("median").get_to(h.median);
  json.at("q1").get_to(h.q1);
  json.at("q3").get_to(h.q3);
  json.at("samples").get_to(h.samples);
  h.sm_mhz = clock("sm_mhz");
  h.memory_mhz = clock("memory_mhz");
  return h;
}

std::string commit_of(const Tool& tool) { return tool.git_sha + (tool.dirty ? "+" : ""); }

// All of content or an Error; O_APPEND puts writers that come together one after the other.
void write_at_end(const std::string& path, const std::string& content) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) fail(path, ": cannot write: ", std::strerror(errno));
  const ssize_t written = ::write(file, content.data(), content.size());
  const int problem = written < 0 ? errno : 0;
  if (::close(file) != 0 || problem) fail(path, ": cannot write: ", std::strerror(problem ? problem : errno));
  if (static_cast<std::size_t>(written) != content.size())
    fail(path, ": expected to write ", content.size(), " bytes, wrote ", written);
}

}  // namespace

std::vector<HistoryLine> load(const std::string& path) {
  const std::string content = read_file(path);
  std::vector<HistoryLine> out;
  std::size_t number = 0;
  for (std::size_t start = 0; start < content.size();) {
    ++number;
    const std::size_t end = content.find('\n', start);
    if (end == std::string::npos)
      fail(path, ":", number, ": expected a whole line, got ", content.size() - start,
           " bytes without an end of line: ", "an interrupted write; remove it");
    try {
      out.push_back(read_line(std::string_view(content).substr(start, end - start)));
    } catch (const Json::exception& e) {
      fail(path, ":", number, ": expected a line of history, got: ", e.what());
    }
    start = end + 1;
  }
  return out;
}

void append(const std::string& path, const Report& report, const std::string& date) {
  if (!report.device) fail(path, ": expected a report of a device, got one without");
  const std::string commit = commit_of(report.tool);
  if (std::filesystem::exists(path))
    for (const HistoryLine& h : load(path))
      if (h.commit == commit && h.device == report.device->name && h.date == date)
        fail(path, ": expected a new run, got ", commit, " on ", h.device, " of ", date, ", which is there already");
  std::string lines;
  for (const Result& row : report.results) {
    if (row.outcome != Outcome::pass || !row.timing || row.timing->samples.empty()) continue;
    const Timing& t = *row.timing;
    lines += line_of({commit, date, report.device->name, report.device->sm, report.device->driver, row.test, row.backend,
                      row.check, median(t.samples), quantile(t.samples, 0.25), quantile(t.samples, 0.75),
                      std::ssize(t.samples), t.conditions.sm_mhz, t.conditions.memory_mhz});
  }
  if (lines.empty()) fail(path, ": expected rows with timings that passed, got none");
  write_at_end(path, lines);
}

std::vector<Series> series(std::span<const HistoryLine> lines) {
  std::vector<Series> out;
  std::vector<std::vector<std::vector<double>>> times;  // by series, by point, of its sessions
  std::map<std::tuple<std::string, std::string, std::string, std::string>, std::size_t> known;
  for (const HistoryLine& h : lines) {
    const auto [found, is_new] = known.try_emplace({h.device, h.test, h.backend, h.check}, out.size());
    if (is_new) {
      out.push_back({h.device, h.test, h.backend, h.check, {}});
      times.emplace_back();
    }
    std::vector<Point>& points = out[found->second].points;
    auto& of_points = times[found->second];
    std::size_t i = 0;
    while (i < points.size() && points[i].commit != h.commit) ++i;
    if (i == points.size()) {
      points.push_back({h.commit, h.date, 0, 0});
      of_points.emplace_back();
    }
    of_points[i].push_back(h.median);
    points[i].time = median(of_points[i]);
    ++points[i].sessions;
  }
  return out;
}

}  // namespace deltagauge::reports::compare
