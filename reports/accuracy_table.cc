#include "reports/accuracy_table.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <tuple>

#include "core/error.h"
#include "core/problem.h"
#include "reports/printable.h"

namespace deltagauge::reports {
namespace {

struct Row {
  std::int64_t cases = 0;
  double rel_l2 = 0, row_ratio = 0, element_ratio = 0;
  std::string worst_case;
};

void raise(double& worst, double value) {
  if (worse(value, worst)) worst = value;
}

}  // namespace

std::string accuracy_table(std::span<const Report> reports) {
  std::map<std::tuple<std::string, std::string, std::string>, Row> rows;
  for (const Report& report : reports) {
    for (const Result& r : report.results) {
      if (r.check != "accuracy" || (r.outcome != Outcome::pass && r.outcome != Outcome::fail)) continue;
      const std::string io(name(parse_id(r.test).problem.io));
      for (const auto& [tensor, m] : r.tensors) {
        Row& row = rows[{r.backend, io, tensor}];
        ++row.cases;
        // The figures leave out elements that are non-finite where the right value is not: no figure stands for those.
        const double none = m.non_finite ? std::numeric_limits<double>::quiet_NaN() : 0;
        raise(row.rel_l2, m.rel_l2 + none);
        raise(row.element_ratio, m.element_ratio + none);
        if (row.worst_case.empty() || worse(m.row_ratio + none, row.row_ratio))
          row.row_ratio = m.row_ratio + none, row.worst_case = r.test;
      }
    }
  }
  if (rows.empty()) fail("expected judged results of the check accuracy, got none");
  std::string text =
      "| kernel | io | tensor | cases | worst rel-L2 | worst row ratio | worst element ratio | worst regime |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const auto& [key, row] : rows)
    text += fmt::format("| {} | {} | {} | {} | {:.2e} | {:.2f} | {:.2f} | `{}` |\n", printable(std::get<0>(key)),
                        std::get<1>(key), printable(std::get<2>(key)), row.cases, row.rel_l2, row.row_ratio,
                        row.element_ratio, printable(row.worst_case));
  return text;
}

}  // namespace deltagauge::reports
