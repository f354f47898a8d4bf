// Benchmark medians over commits, with the commits at which the level changed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/html/sections.h"
#include "reports/html/text.h"

namespace deltagauge::reports::html {
namespace {

constexpr std::size_t kMostSeries = 40, kMostRows = 100;

struct Track {
  std::string series;
  std::vector<const HistoryPoint*> points;
  std::size_t changes = 0;
};

Chart chart_of(const Track& track) {
  Series medians{"median", {}}, changes{"change point", {}, Mark::symbols};
  Chart chart{"Median over commits", "", {"commit, oldest first"}, {"median latency, \u00b5s", Scale::fitted}, {}, {}};
  for (std::size_t i = 0; i < track.points.size(); ++i) {
    const HistoryPoint& p = *track.points[i];
    chart.x_names.push_back(p.commit.substr(0, 10) + " " + p.date);
    if (!std::isfinite(p.median)) continue;
    (medians.points).emplace_back(static_cast<double>(i), p.median * 1e6);
    if (p.change_point) changes.points.emplace_back(static_cast<double>(i), p.median * 1e6);
  }
  chart.series = {medians};
  if (!changes.points.empty()) chart.series.push_back(changes);
  chart.caption = fmt::format("{}, {}. The axis does not start at 0.",
                              count(static_cast<std::int64_t>(track.points.size()), "commit", "commits"),
                              count(static_cast<std::int64_t>(track.changes), "change point", "change points"));
  return chart;
}

std::string data_table(const Track& track) {
  std::vector<std::vector<std::string>> rows;
  const std::size_t first = track.points.size() > kMostRows ? track.points.size() - kMostRows : 0;
  for (std::size_t i = 0; i < track.points.size(); ++i) {
    const HistoryPoint& p = *track.points[i];
    if (i >= first || p.change_point)
      rows.push_back(
          {escape(p.commit.substr(0, 10)), escape(p.date), microseconds(p.median), p.change_point ? "change" : ""});
  }
  std::reverse(rows.begin(), rows.end());
  return table_of(first ? "Newest first; of the older commits only the change points" : "Newest first",
                  {"Commit", "Date", "Median \u00b5s", "Change point"}, rows);
}

}  // namespace

void add_history(Page& page, std::span<const HistoryPoint> history) {
  std::vector<Track> tracks;  // in the order of first appearance
  for (const HistoryPoint& p : history) {
    auto found = std::find_if(tracks.begin(), tracks.end(), [&](const Track& t) { return t.series == p.series; });
    if (found == tracks.end()) found = tracks.insert(tracks.end(), {p.series, {}, 0});
    found->points.push_back(&p);
    found->changes += p.change_point;
  }
  if (tracks.empty()) return;
  std::stable_partition(tracks.begin(), tracks.end(), [](const Track& t) { return t.changes > 0; });
  page.open("history", "History");
  if (tracks.size() > kMostSeries)
    page.body +=
        fmt::format("<p>The first {} of {} series, those with change points first.</p>\n", kMostSeries, tracks.size());
  page.body += "<div class=\"pair\">\n";
  for (std::size_t i = 0; i < std::min(tracks.size(), kMostSeries); ++i) {
    page.body += "<section class=\"entry\"><h3><code>" + escape(tracks[i].series) + "</code></h3>\n";
    const Chart chart = chart_of(tracks[i]);
    const std::string numbers = folded("Numbers", data_table(tracks[i]));
    if (chart.series.front().points.empty())
      page.body += "<p>No finite median.</p>" + numbers;
    else
      page.add(chart, numbers);
    page.body += "</section>\n";
  }
  page.body += "</div>\n";
  page.close();
}

}  // namespace deltagauge::reports::html
