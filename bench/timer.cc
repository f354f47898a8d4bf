#include "bench/timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "core/error.h"
#if DELTAGAUGE_HAVE_CUDA
#include "kernels/probe/roofline.h"
#include "kernels/runtime/device_info.h"
#include "kernels/runtime/event.h"
#include "kernels/runtime/graph.h"
#include "kernels/runtime/nvml.h"
#include "kernels/runtime/stream.h"
#endif

namespace deltagauge::bench {
namespace {

class CpuTimer : public Timer {
 public:
  explicit CpuTimer(Plan& plan) : plan_(plan) {}
  double sample() override {
    const auto start = std::chrono::steady_clock::now();
    plan_.run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  std::int64_t calls() const override { return 1; }

 private:
  Plan& plan_;
};

#if DELTAGAUGE_HAVE_CUDA

using kernels::runtime::Event, kernels::runtime::Graph, kernels::runtime::Stream;

constexpr double kSampleSeconds = 200e-6;  // a sample lasts at least so long, so that event resolution does not matter
constexpr std::int64_t kMostCalls = 256;   // of a sample
constexpr double kCachesBetween = 2;       // L2 sizes of other data between two uses of a buffer

// Events around work enqueued on the timer's own stream.
class DeviceTimer : public Timer {
 public:
  double sample() override {
    return elapsed([this] { enqueue(); }) / static_cast<double>(calls_);
  }
  std::int64_t calls() const override { return calls_; }

 protected:
  virtual void enqueue() = 0;
  double elapsed(const std::function<void()>& work) {
    start_.record(stream_.get());
    work();
    end_.record(stream_.get());
    end_.sync();
    return 1e-3 * end_.milliseconds_since(start_);
  }
  // Calls that fill a sample, from the better of two trials.
  void choose_calls(const std::function<void()>& one) {
    const double seconds = std::min(elapsed(one), elapsed(one));
    calls_ = std::clamp<std::int64_t>(std::llround(std::ceil(kSampleSeconds / seconds)), 1, kMostCalls);
  }

  Stream stream_;
  std::int64_t calls_ = 1;

 private:
  Event start_, end_;
};

class EagerTimer : public DeviceTimer {
 public:
  explicit EagerTimer(DevicePlan& plan) : plan_(plan) {
    choose_calls([this] { plan_.enqueue(stream_.get()); });
  }

 protected:
  void enqueue() override {
    for (std::int64_t i = 0; i < calls_; ++i) plan_.enqueue(stream_.get());
  }

 private:
  DevicePlan& plan_;
};

class GraphTimer : public DeviceTimer {
 public:
  explicit GraphTimer(std::vector<DevicePlan*> plans) : plans_(std::move(plans)) {
    choose_calls([this] { plans_[0]->enqueue(stream_.get()); });
    const auto copies = static_cast<std::int64_t>(plans_.size());
    calls_ = (calls_ + copies - 1) / copies * copies;
    graph_.emplace(stream_, [this, copies] {
      for (std::int64_t i = 0; i < calls_; ++i) plans_[static_cast<std::size_t>(i % copies)]->enqueue(stream_.get());
    });
  }

 protected:
  void enqueue() override { graph_->launch(stream_); }

 private:
  std::vector<DevicePlan*> plans_;
  std::optional<Graph> graph_;
};

DevicePlan& device_plan(Plan& plan) {
  if (auto* device = dynamic_cast<DevicePlan*>(&plan)) return *device;
  fail("timer: expected a plan on a device, got one on the CPU; use the timer cpu");
}

class ColdTimer : public Timer {
 public:
  ColdTimer(Plan& plan, const MakePlan& make_plan, double bytes) {
    const auto& device = kernels::runtime::device_query().device;
    const double l2 = device ? static_cast<double>(device->l2_bytes) : 0;
    // A call that moves more than lies between two uses evicts its own data.
    const double others = std::ceil(kCachesBetween * l2 / std::max(bytes, 1.0));
    const auto copies = others <= 1 ? 1 : std::clamp<std::int64_t>(1 + std::llround(others), 2, kMostCalls);
    std::vector<DevicePlan*> plans{&device_plan(plan)};
    for (std::int64_t i = 1; i < copies; ++i) {
      copies_.push_back(make_plan());
      copies_.back()->run();
      plans.push_back(&device_plan(*copies_.back()));
    }
    graph_.emplace(std::move(plans));
  }
  double sample() override { return graph_->sample(); }
  std::int64_t calls() const override { return graph_->calls(); }

 private:
  std::vector<std::unique_ptr<Plan>> copies_;
  std::optional<GraphTimer> graph_;
};

std::unique_ptr<Timer> make_device_timer(std::string_view timer, Plan& plan, const MakePlan& make_plan, double bytes) {
  if (timer == "eager-hot") return std::make_unique<EagerTimer>(device_plan(plan));
  if (timer == "graph-cold") return std::make_unique<ColdTimer>(plan, make_plan, bytes);
  return std::make_unique<GraphTimer>(std::vector<DevicePlan*>{&device_plan(plan)});
}

#else

std::unique_ptr<Timer> make_device_timer(std::string_view timer, Plan&, const MakePlan&, double) {
  fail("timer ", timer, ": expected a build with CUDA, got one without");
}

#endif

}  // namespace

std::vector<std::string_view> timers() { return {"graph-hot", "graph-cold", "eager-hot", "cpu"}; }

bool on_device(std::string_view timer) { return timer != "cpu"; }

std::unique_ptr<Timer> make_timer(std::string_view timer, Plan& plan, const MakePlan& make_plan, double bytes) {
  if (timer == "cpu") return std::make_unique<CpuTimer>(plan);
  const auto known = timers();
  if (std::find(known.begin(), known.end(), timer) == known.end())
    fail("timer: expected graph-hot, graph-cold, eager-hot or cpu, got '", timer, "'");
  return make_device_timer(timer, plan, make_plan, bytes);
}

std::optional<reports::Roofline> measure_roofline() {
#if DELTAGAUGE_HAVE_CUDA
  if (kernels::runtime::device_query().device) {
    const auto c = kernels::probe::ceilings();
    return reports::Roofline{1e-12 * c.copy_bytes_s, 1e-12 * c.tensor_flops_s};
  }
#endif
  return std::nullopt;
}

reports::Conditions conditions() {
#if DELTAGAUGE_HAVE_CUDA
  if (kernels::runtime::device_query().device) {
    const auto s = kernels::runtime::device_state();
    return {s.sm_mhz, s.memory_mhz, s.temperature_c, s.power_w, s.throttle};
  }
#endif
  return {};
}

}  // namespace deltagauge::bench
