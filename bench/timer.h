// Timers: each gives samples of the time of one call of a plan. What a sample includes is the timer's name, which is also
// the row's check in reports:
//   graph-hot   replays of a captured graph, the same buffers each time
//   graph-cold  replays of a graph whose calls rotate over enough copies of the buffers that each finds L2 without its data
//   eager-hot   calls enqueued one by one, so that launch overhead on the host shows where it is the limit
//   cpu         a CPU backend's run(), by the wall clock
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend.h"
#include "reports/report.h"

namespace deltagauge::bench {

class Timer {
 public:
  virtual ~Timer() = default;
  virtual double sample() = 0;             // seconds of one call, the mean of calls()
  virtual std::int64_t calls() const = 0;  // back to back in a sample
};

std::vector<std::string_view> timers();  // graph-hot graph-cold eager-hot cpu
bool on_device(std::string_view timer);  // all but cpu

// Makes one more plan on the same inputs, for the timers that rotate.
using MakePlan = std::function<std::unique_ptr<Plan>()>;

// plan has run once and outlives the timer. bytes: the least its op moves, OpInfo::bytes. Throws Error on a device timer in
// a build without CUDA or for a plan that is not a DevicePlan.
std::unique_ptr<Timer> make_timer(std::string_view timer, Plan& plan, const MakePlan& make_plan, double bytes);

// Measured ceilings of the device, and its clocks, power and so on now; absent without one.
std::optional<reports::Roofline> measure_roofline();
reports::Conditions conditions();

}  // namespace deltagauge::bench
