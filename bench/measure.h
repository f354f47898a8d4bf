// Samples until the noise criterion or the time limit, then the statistics of a row.
#pragma once
#include <functional>

#include "bench/timer.h"
#include "reports/compare/stop_rule.h"
#include "reports/report.h"

namespace deltagauge::bench {

// flops and bytes: the least of the op; roofline may be absent. The first samples, a tenth of options.min_time, warm up and
// are not kept. watch is asked now and then while samples are taken.
reports::Timing measure(Timer& timer, double flops, double bytes, const std::optional<reports::Roofline>& roofline,
                        reports::compare::StopOptions options, const std::function<reports::Conditions()>& watch);

// Seconds that the ceilings allow for so much work; 0 without them.
double floor_of(double flops, double bytes, const std::optional<reports::Roofline>& roofline);

}  // namespace deltagauge::bench
