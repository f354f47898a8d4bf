// Where a tensor's error lies: its worst row ratio along the packed tokens, and a heat map over heads and blocks.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "reports/html/sections.h"
#include "reports/html/text.h"

namespace deltagauge::reports::html {
namespace {

constexpr std::size_t kMostTensors = 24;
constexpr std::int64_t kMostPoints = 512, kMostColumns = 128, kMostRows = 64;
constexpr int kBelow = 6, kLevels = 10;  // levels 0-5 below the limit, 6-8 above, 9 not finite

struct Entry {
  const Result* result;
  const std::string* tensor;
  const TensorMetrics* metrics;
};

double larger(double a, double b) { return worse(b, a) ? b : a; }

int level_of(double ratio, double limit) {
  if (!std::isfinite(ratio)) return 9;
  const double x = ratio / limit;
  if (x <= 1) return std::min(kBelow - 1, static_cast<int>(std::max(0.0, x) * kBelow));
  return x <= 2 ? 6 : x <= 8 ? 7 : 8;
}

// The map with neighbouring rows and columns joined, each cell the worst of its parts.
ErrorMap joined(const ErrorMap& map, std::int64_t most_heads, std::int64_t most_blocks) {
  const std::int64_t down = (map.heads + most_heads - 1) / most_heads, across = (map.blocks + most_blocks - 1) / most_blocks;
  if (map.heads <= 0 || map.blocks <= 0) return {};
  ErrorMap out{(map.heads + down - 1) / down, (map.blocks + across - 1) / across, map.rows_per_block * across, {}};
  out.row_ratio.assign(static_cast<std::size_t>(out.heads * out.blocks), -1);
  for (std::int64_t h = 0; h < map.heads; ++h)
    for (std::int64_t b = 0; b < map.blocks; ++b) {
      double& cell = out.row_ratio[static_cast<std::size_t>(h / down * out.blocks + b / across)];
      cell = larger(cell, map.row_ratio[static_cast<std::size_t>(h * map.blocks + b)]);
    }
  return out;
}

std::string rows_of(const std::string& tensor) {
  if (tensor == "S" || tensor == "Ainv" || tensor == "Akk") return "chunk";
  return tensor.find("state") != std::string::npos ? "sequence" : "packed token";
}

Chart curve(const Entry& e, double limit) {
  const ErrorMap map = joined(*e.metrics->map, 1, kMostPoints);
  Series ratio{"worst row ratio of all heads", {}}, missing{"not finite", {}, Mark::symbols};
  double top = limit, bottom = limit;
  for (const double x : map.row_ratio)
    if (std::isfinite(x) && x > 0) top = std::max(top, x), bottom = std::min(bottom, x);
  const Scale scale = top > 20 * limit ? Scale::log10 : Scale::linear;
  for (std::int64_t b = 0; b < map.blocks; ++b) {
    const double x = static_cast<double>(b * map.rows_per_block), y = map.row_ratio[static_cast<std::size_t>(b)];
    if (std::isfinite(y))
      ratio.points.emplace_back(x, scale == Scale::linear ? y : std::max(y, bottom));
    else
      missing.points.emplace_back(x, top * 1.1);
  }
  const double last = static_cast<double>((map.blocks - 1) * map.rows_per_block);
  Series line{"limit " + number(limit), {{0, limit}}, Mark::reference};
  if (last > 0) line.points.emplace_back(last, limit);
  Chart chart{"Error over " + rows_of(*e.tensor) + "s", "", {rows_of(*e.tensor)}, {"row ratio", scale}, {ratio, line}, {}};
  if (!missing.points.empty()) chart.series.push_back(missing);
  std::size_t worst = 0;
  for (std::size_t b = 1; b < map.row_ratio.size(); ++b)
    if (worse(map.row_ratio[b], map.row_ratio[worst])) worst = b;
  const auto first = static_cast<std::int64_t>(worst) * map.rows_per_block;
  chart.caption =
      fmt::format("The ratio of a row's error to its budget, the worst of all heads per {}. Worst: {} at {}s {} to {}.",
                  count(map.rows_per_block, rows_of(*e.tensor), rows_of(*e.tensor) + "s"), number(map.row_ratio[worst]),
                  rows_of(*e.tensor), first, first + map.rows_per_block - 1);
  return chart;
}

// The key of the colours: one box a level, the limit as a line between them.
std::string colour_key(double limit, double y) {
  constexpr double kBox = 34, kLeft = 50;
  std::string out;
  for (int level = 0; level < kLevels; ++level) {
    const double x = kLeft + kBox * level;
    out += fmt::format("<path class=\"h{0}\" d=\"M{1} {2}h{3}v14h-{3}z\"/>", level, x, y, kBox);
    if (level >= kBelow)
      out += fmt::format("<path class=\"{}\" d=\"M{} {}l{} 14{}\"/>", "over", x, y, kBox,
                         level == 9 ? fmt::format("m0 -14l-{} 14", kBox) : "");
  }
  const std::array<std::string, kLevels> ends = {
      "0",         "", number(limit / 3), "", number(limit * 2 / 3), "", number(limit), number(2 * limit), number(8 * limit),
      "not finite"};
  for (int level = 0; level < kLevels; ++level) {
    const double x = kLeft + kBox * level + (level == 9 ? kBox / 2 : 0);
    out += fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\">{}</text>", level == 9 ? "start" : "mid", x, y + 30,
                       ends[static_cast<std::size_t>(level)]);
  }
  const double edge = kLeft + kBox * kBelow;
  return out +
         fmt::format("<path class=\"edge\" d=\"M{0} {1}v22\"/><text class=\"mid strong\" x=\"{0}\" y=\"{2}\">limit</text>",
                     edge, y - 4, y - 8);
}

std::string heat_map(const Entry& e, double limit) {
  constexpr double kLeft = 50, kWidth = 454, kTop = 10;
  const ErrorMap& whole = *e.metrics->map;
  const ErrorMap map = joined(whole, kMostRows, kMostColumns);
  std::array<std::string, kLevels> cells;
  std::string over;
  for (std::int64_t h = 0; h < map.heads; ++h)
    for (std::int64_t b = 0; b < map.blocks;) {
      const auto level_at = [&](std::int64_t i) {
        return level_of(map.row_ratio[static_cast<std::size_t>(h * map.blocks + i)], limit);
      };
      const int level = level_at(b);
      std::int64_t end = b;
      for (; end < map.blocks && level_at(end) == level; ++end)
        if (level >= kBelow) over += fmt::format("M{} {}l1 1{}", end, h, level == 9 ? "m0 -1l-1 1" : "");
      cells[static_cast<std::size_t>(level)] += fmt::format("M{} {}h{}v1h-{}z", b, h, end - b, end - b);
      b = end;
    }
  const double height = std::clamp(18.0 * static_cast<double>(map.heads), 60.0, 240.0), below = kTop + height;
  std::string out = fmt::format(
      "<svg class=\"chart\" viewBox=\"0 0 520 {}\" role=\"img\"><title>Row ratio by head and block, {}"
      "</title><svg x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\" "
      "preserveAspectRatio=\"none\">",
      below + 92, escape(*e.tensor), kLeft, kTop, kWidth, height, map.blocks, map.heads);
  for (int level = 0; level < kLevels; ++level)
    if (const std::string& d = cells[static_cast<std::size_t>(level)]; !d.empty())
      out += fmt::format("<path class=\"h{}\" d=\"{}\"/>", level, d);
  if (!over.empty()) out += fmt::format("<path class=\"over\" d=\"{}\"/>", over);
  out += "</svg>";
  const auto words = [&](const char* anchor, double x, double y, const std::string& text) {
    out += fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\">{}</text>", anchor, x, y, text);
  };
  words("end", kLeft - 6, kTop + 12, "0");
  if (whole.heads > 1) words("end", kLeft - 6, below, std::to_string(whole.heads - 1));
  out += fmt::format("<text class=\"mid\" transform=\"translate(14 {}) rotate(-90)\">head</text>", kTop + height / 2);
  words("start", kLeft, below + 16, "0");
  if (whole.blocks > 1) words("end", kLeft + kWidth, below + 16, std::to_string(whole.blocks * whole.rows_per_block));
  words("mid", kLeft + kWidth / 2, below + 16, rows_of(*e.tensor));
  return out + colour_key(limit, below + 50) + "</svg>";
}

std::string heads_table(const Entry& e, double limit) {
  const ErrorMap& map = *e.metrics->map;
  std::vector<std::vector<std::string>> rows;
  for (std::int64_t h = 0; h < map.heads; ++h) {
    std::int64_t worst = 0, above = 0;
    const auto at = [&](std::int64_t b) { return map.row_ratio[static_cast<std::size_t>(h * map.blocks + b)]; };
    for (std::int64_t b = 0; b < map.blocks; ++b) {
      if (worse(at(b), at(worst))) worst = b;
      above += worse(at(b), limit);
    }
    rows.push_back({std::to_string(h), number(at(worst)),
                    fmt::format("{} to {}", worst * map.rows_per_block, (worst + 1) * map.rows_per_block - 1),
                    fmt::format("{} of {}", above, map.blocks)});
  }
  return table_of("Worst row ratio by head",
                  {"Head", "Worst ratio", "In " + rows_of(*e.tensor) + "s", "Blocks over the limit"}, rows);
}

void add(Page& page, const Entry& e, double limit) {
  const ErrorMap& map = *e.metrics->map;
  page.body += fmt::format(
      "<section class=\"entry\"><h3><span class=\"{0}\">{0}</span> {1} of {2}, {3}</h3><p><code>{4}</code></p>\n",
      name(e.result->outcome), escape(*e.tensor), escape(e.result->backend), escape(e.result->check),
      escape(e.result->test));
  page.body += "<div class=\"pair\">\n";
  page.add(curve(e, limit));
  const auto above = std::count_if(map.row_ratio.begin(), map.row_ratio.end(), [&](double x) { return worse(x, limit); });
  std::string caption = fmt::format("{} of {} over the limit; those carry a diagonal, non-finite ones a cross.", above,
                                    count(map.heads * map.blocks, "block", "blocks"));
  if (map.heads > kMostRows || map.blocks > kMostColumns) caption += " A cell here is the worst of several neighbours.";
  page.body +=
      fmt::format("<figure><h4>Row ratio by head and block</h4>{}<figcaption>{}</figcaption>{}</figure>\n</div></section>\n",
                  heat_map(e, limit), caption, folded("Numbers by head", heads_table(e, limit)));
}

}  // namespace

void add_maps(Page& page, const Report& report, double row_limit) {
  std::vector<Entry> entries;
  for (const Result& r : report.results)
    for (const auto& [tensor, m] : r.tensors)
      if (m.map && m.map->heads > 0 && m.map->blocks > 0) entries.push_back({&r, &tensor, &m});
  if (entries.empty()) return;
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    const bool a_failed = a.result->outcome == Outcome::fail, b_failed = b.result->outcome == Outcome::fail;
    return a_failed != b_failed ? a_failed : worse(a.metrics->row_ratio, b.metrics->row_ratio);
  });
  page.open("maps", "Where the error lies");
  if (entries.size() > kMostTensors)
    page.body +=
        fmt::format("<p>The {} worst of {} tensors with a map, failures first; the JSON report has the others.</p>\n",
                    kMostTensors, entries.size());
  for (std::size_t i = 0; i < std::min(entries.size(), kMostTensors); ++i) add(page, entries[i], row_limit);
  page.close();
}

}  // namespace deltagauge::reports::html
