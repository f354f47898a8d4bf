#include "reports/html/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "reports/html/text.h"

namespace deltagauge::reports::html {
namespace {

constexpr double kWidth = 520, kHeight = 290, kLeft = 66, kRight = 504, kTop = 12, kBottom = 240, kLegendLine = 20;
constexpr std::size_t kStyles = 6;  // .s0 ... .s5 of page.css, and as many symbols

bool is_log(Scale scale) { return scale == Scale::log2 || scale == Scale::log10; }

double forward(Scale scale, double x) {
  switch (scale) {
    case Scale::linear:
    case Scale::fitted:
      return x;
    case Scale::log2:
      return std::log2(x);
    case Scale::log10:
      return std::log10(x);
  }
  return x;
}

struct Extent {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void add(double x) { low = std::min(low, x), high = std::max(high, x); }
};

// A little room around the data; linear axes of magnitudes start at 0.
Extent padded(Extent e, Scale scale) {
  if (e.low > e.high) return {is_log(scale) ? 1.0 : 0.0, is_log(scale) ? 2.0 : 1.0};
  if (is_log(scale)) return {e.low / 1.2, e.high * 1.2};
  if (scale == Scale::fitted) {
    const double margin = e.high > e.low ? 0.1 * (e.high - e.low) : e.high != 0 ? 0.1 * std::abs(e.high) : 1;
    return {e.low - margin, e.high + margin};
  }
  if (e.low >= 0) e.low = 0;
  const double room = e.high > e.low ? 0.05 * (e.high - e.low) : 1;
  return {e.low < 0 ? e.low - room : e.low, e.high + room};
}

std::string symbol(std::size_t style, double x, double y) {
  switch (style % kStyles) {
    case 0:
      return fmt::format("M{:.1f} {:.1f}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z", x - 3.5, y);
    case 1:
      return fmt::format("M{:.1f} {:.1f}h7v7h-7z", x - 3.5, y - 3.5);
    case 2:
      return fmt::format("M{:.1f} {:.1f}l4.5 8h-9z", x, y - 5);
    case 3:
      return fmt::format("M{:.1f} {:.1f}l4.5 4.5l-4.5 4.5l-4.5 -4.5z", x, y - 4.5);
    case 4:
      return fmt::format("M{:.1f} {:.1f}l4.5 -8h-9z", x, y + 5);
    default:
      return fmt::format("M{:.1f} {:.1f}h3v-3h3v3h3v3h-3v3h-3v-3h-3z", x - 4.5, y - 1.5);
  }
}

std::string draw(const Series& s, std::size_t style, const Ruler& x, const Ruler& y) {
  std::string line, symbols;
  for (const auto& [px, py] : s.points) {
    line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : "L", x(px), y(py));
    if (s.mark != Mark::reference && s.points.size() <= 64) symbols += symbol(style, x(px), y(py));
  }
  std::string out;
  if (s.mark == Mark::reference)
    out += fmt::format("<path class=\"ref\" d=\"{}\"/>", line);
  else if (s.mark == Mark::line)
    out += fmt::format("<path class=\"line s{}\" d=\"{}\"/>", style % kStyles, line);
  if (!symbols.empty()) out += fmt::format("<path class=\"dot s{}\" d=\"{}\"/>", style % kStyles, symbols);
  return out;
}

std::string legend(const Series& s, std::size_t style, double y) {
  Series sample{s.name, {{0, 0}, {1, 0}}, s.mark};
  const Ruler across(Scale::linear, 0, 1, kLeft, kLeft + 26), down(Scale::linear, 0, 1, y - 4, y - 5);
  return draw(sample, style, across, down) + fmt::format("<text x=\"{}\" y=\"{}\">{}</text>", kLeft + 36, y, escape(s.name));
}

std::string axes(const Chart& chart, const Ruler& x, const Ruler& y) {
  std::string grid, words;
  for (const double tick : y.ticks()) {
    grid += fmt::format("M{} {:.1f}H{}", kLeft, y(tick), kRight);
    words += fmt::format("<text class=\"end\" x=\"{}\" y=\"{:.1f}\">{}</text>", kLeft - 6, y(tick) + 4, number(tick));
  }
  for (const double tick : x.ticks()) {
    if (!chart.x_names.empty() && tick != std::floor(tick)) continue;
    grid += fmt::format("M{:.1f} {}V{}", x(tick), kTop, kBottom);
    words += fmt::format("<text class=\"mid\" x=\"{:.1f}\" y=\"{}\">{}</text>", x(tick), kBottom + 17, number(tick));
  }
  words += fmt::format("<text class=\"mid\" x=\"{}\" y=\"{}\">{}</text>", (kLeft + kRight) / 2, kBottom + 37,
                       escape(chart.x.label));
  words += fmt::format("<text class=\"mid\" transform=\"translate(14 {}) rotate(-90)\">{}</text>", (kTop + kBottom) / 2,
                       escape(chart.y.label));
  return fmt::format("<path class=\"grid\" d=\"{}\"/><path class=\"axis\" d=\"M{} {}V{}H{}\"/>{}", grid, kLeft, kTop,
                     kBottom, kRight, words);
}

std::string_view name(Scale scale) {
  constexpr std::string_view kNames[] = {"linear", "fitted", "log2", "log10"};
  return kNames[static_cast<int>(scale)];
}

}  // namespace

Ruler::Ruler(Scale scale, double low, double high, double from, double to)
    : scale_(scale), low_(forward(scale, low)), high_(forward(scale, high)), from_(from), to_(to) {
  if (!(high_ > low_)) high_ = low_ + 1;
}

double Ruler::operator()(double value) const {
  return from_ + (to_ - from_) * (forward(scale_, value) - low_) / (high_ - low_);
}

std::vector<double> Ruler::ticks() const {
  std::vector<double> out;
  const double span = high_ - low_;
  if (scale_ == Scale::log10 && span < 3) {  // 1, 2 and 5 of each decade
    for (int decade = static_cast<int>(std::floor(low_)); decade <= high_; ++decade)
      for (const double digit : {1, 2, 5})
        if (const double at = decade + std::log10(digit); at >= low_ && at <= high_)
          out.push_back(digit * std::pow(10, decade));
    return out;
  }
  double step = std::pow(10, std::floor(std::log10(span / 6)));
  for (const double factor : {2.0, 2.5, 2.0})
    if (span / step > 6.5) step *= factor;
  if (is_log(scale_)) step = std::max(1.0, std::ceil(span / 7));
  for (double i = std::ceil(low_ / step); i * step <= high_; ++i) {
    const double at = i * step;
    out.push_back(!is_log(scale_) ? at : std::pow(scale_ == Scale::log2 ? 2 : 10, at));
  }
  return out;
}

std::string svg(const Chart& chart) {
  Extent xs, ys;
  for (const Series& s : chart.series)
    for (const auto& [px, py] : s.points) xs.add(px), ys.add(py);
  if (is_log(chart.x.scale)) xs = padded(xs, chart.x.scale);
  if (xs.low > xs.high) xs = {0, 1};
  ys = padded(ys, chart.y.scale);
  const Ruler x(chart.x.scale, xs.low, xs.high, kLeft, kRight), y(chart.y.scale, ys.low, ys.high, kBottom, kTop);
  std::string out = fmt::format("<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\"><title>{}</title>", kWidth,
                                kHeight + kLegendLine * static_cast<double>(chart.series.size()), escape(chart.title)) +
                    axes(chart, x, y);
  for (std::size_t i = 0; i < chart.series.size(); ++i)
    out += draw(chart.series[i], i, x, y) + legend(chart.series[i], i, kHeight + 8 + kLegendLine * static_cast<double>(i));
  return out + "</svg>";
}

std::string json(const Chart& chart) {
  using Json = nlohmann::ordered_json;
  std::map<double, std::vector<Json>> columns;  // x: y of each series, null where it has no point
  for (std::size_t i = 0; i < chart.series.size(); ++i)
    for (const auto& [x, y] : chart.series[i].points) {
      columns[x].resize(chart.series.size());
      columns[x][i] = y;
    }
  std::vector<Json> data(1 + chart.series.size(), Json::array());
  for (const auto& [x, ys] : columns) {
    data[0].push_back(x);
    for (std::size_t i = 0; i < ys.size(); ++i) data[i + 1].push_back(ys[i]);
  }
  constexpr std::string_view kMarks[] = {"line", "reference", "symbols"};
  Json series = Json::array(), names = Json::array();
  for (const Series& s : chart.series)
    series.push_back({{"name", visible(s.name)}, {"mark", kMarks[static_cast<int>(s.mark)]}});
  for (const std::string& x : chart.x_names) names.push_back(visible(x));
  const Json out = {{"title", visible(chart.title)},
                    {"x", {{"label", visible(chart.x.label)}, {"scale", name(chart.x.scale)}}},
                    {"y", {{"label", visible(chart.y.label)}, {"scale", name(chart.y.scale)}}},
                    {"series", series},
                    {"x_names", names},
                    {"data", data}};
  std::string text;
  for (const char c : out.dump()) text += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return text;
}

std::string figure(const Chart& chart, std::size_t number, const std::string& extra) {
  return fmt::format(
      "<figure><h4>{}</h4><div class=\"plot\" data-chart=\"{}\">{}</div><figcaption>{}</figcaption>{}</figure>\n",
      escape(chart.title), number, svg(chart), escape(chart.caption), extra);
}

}  // namespace deltagauge::reports::html
