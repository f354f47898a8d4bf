// Line charts: a static SVG for every reader, and the same data as JSON from which page.js draws with uPlot.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace deltagauge::reports::html {

enum class Scale { linear, fitted, log2, log10 };  // linear magnitudes start at 0; fitted is linear around its data
enum class Mark { line, reference, symbols };      // measured points; a dashed line without points; points without a line

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;  // finite, x ascending and unique
  Mark mark = Mark::line;
};

struct Axis {
  std::string label;
  Scale scale = Scale::linear;
};

struct Chart {
  std::string title;    // of the plot, for readers who do not see it too
  std::string caption;  // what it says, in words
  Axis x, y;
  std::vector<Series> series;
  std::vector<std::string> x_names;  // of x = 0, 1, 2, ...; may be empty
};

// Where values of an axis fall on a line of pixels, and its ticks.
class Ruler {
 public:
  Ruler(Scale scale, double low, double high, double from, double to);
  double operator()(double value) const;
  std::vector<double> ticks() const;

 private:
  Scale scale_;
  double low_, high_, from_, to_;  // low_ and high_ after the logarithm
};

std::string svg(const Chart& chart);
std::string json(const Chart& chart);  // one object; "<" is escaped

// The <figure>; extra is markup below the caption (a data table). number ties the figure to its JSON object.
std::string figure(const Chart& chart, std::size_t number, const std::string& extra);

}  // namespace deltagauge::reports::html
