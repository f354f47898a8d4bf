// A device plan as a CUDA graph: captured once from its enqueue(), replayed on whatever load() put into its memory.
#include "core/error.h"
#include "validate/replay/replayable.h"
#if DELTAGAUGE_HAVE_CUDA
#include <optional>
#include <utility>

#include "kernels/runtime/event.h"
#include "kernels/runtime/graph.h"
#include "kernels/runtime/stream.h"
#include "validate/mark.h"
#endif

namespace deltagauge::validate {

#if DELTAGAUGE_HAVE_CUDA
namespace {

class GraphReplay : public Replayable {
 public:
  explicit GraphReplay(std::unique_ptr<Plan> plan) : plan_(std::move(plan)), device_(dynamic_cast<DevicePlan&>(*plan_)) {
    device_.enqueue(stream_.get());  // loads the kernel, which a capture may not
    stream_.sync();
    graph_.emplace(stream_, [this] { device_.enqueue(stream_.get()); });
  }
  void load(const Tensors& inputs) override { device_.load(inputs); }
  void replay() override {
    {
      Mark mark("run");
      const double seconds = *this->seconds(1);
      if (auto* span = mark.span()) span->device_seconds = seconds;
    }
    const Mark mark("read back");
    device_.collect();
  }
  Tensors outputs() const override { return device_.outputs(); }
  std::vector<std::string> audit() const override { return device_.audit(); }
  std::vector<bool> untouched(std::string_view output) const override { return device_.untouched(output); }
  std::optional<double> seconds(std::int64_t calls) override {
    start_.record(stream_.get());
    for (std::int64_t i = 0; i < calls; ++i) graph_->launch(stream_);
    end_.record(stream_.get());
    end_.sync();
    return 1e-3 * end_.milliseconds_since(start_) / static_cast<double>(calls);
  }

 private:
  std::unique_ptr<Plan> plan_;
  DevicePlan& device_;
  kernels::runtime::Stream stream_;
  kernels::runtime::Event start_, end_;
  std::optional<kernels::runtime::Graph> graph_;
};

}  // namespace

std::unique_ptr<Replayable> make_graph_replay(std::unique_ptr<Plan> plan) {
  return std::make_unique<GraphReplay>(std::move(plan));
}

#else

std::unique_ptr<Replayable> make_graph_replay(std::unique_ptr<Plan>) {
  fail("replay: expected a build with CUDA for a plan on a device, got one without");
}

#endif

}  // namespace deltagauge::validate
