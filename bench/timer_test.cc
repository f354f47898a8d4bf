// Device timers on a real kernel; what needs no device is refused the same everywhere.
#include "bench/timer.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/error.h"
#include "core/inputs.h"
#include "core/op.h"
#include "validate/run.h"

namespace deltagauge::bench {
namespace {

TEST(Timer, refuses_an_unknown_name_and_a_plan_that_is_not_on_a_device) {
  Registry registry;
  validate::add_cpu_backends(registry);
  const Case test = parse_id("l2norm/fwd/len=5,HK=1,K=16/bf16/precise/seed=1");
  const auto plan = registry.get("oracle.f64").plan(test.problem, make_inputs(test), {});
  EXPECT_THROW(make_timer("graph-warm", *plan, {}, 1), Error);
  EXPECT_THROW(make_timer("graph-hot", *plan, {}, 1), Error);
}

TEST(TimerOnDevice, every_timer_gives_a_time_and_leaves_the_answer_as_it_was) {
  Registry registry;
  validate::add_cuda_backends(registry);
  const Case test = parse_id("gdn/fwd/len=300+1+64,HK=2,HV=4,K=64,V=64/bf16/gate=mild/keys=iid/precise/seed=1");
  const Backend& backend = registry.get("cuda.gdn.recurrent");
  if (const auto why = backend.unsupported(test.problem)) {
    if (std::getenv("DELTAGAUGE_REQUIRE_GPU")) FAIL() << *why;
    GTEST_SKIP() << *why;
  }
  const Tensors inputs = make_inputs(test);
  const auto make_plan = [&] { return backend.plan(test.problem, inputs, {}); };
  const auto plan = make_plan();
  plan->run();
  const Tensors before = plan->outputs();
  for (const char* name : {"graph-hot", "graph-cold", "eager-hot"}) {
    const auto timer = make_timer(name, *plan, make_plan, op_info("gdn").bytes(test.problem));
    EXPECT_GT(timer->sample(), 0) << name;
    EXPECT_GT(timer->calls(), 1) << name;
  }
  plan->run();
  for (const auto& [name, tensor] : before) EXPECT_TRUE(bitwise_equal(tensor, get(plan->outputs(), name))) << name;
  const auto roofline = measure_roofline();
  ASSERT_TRUE(roofline.has_value());
  EXPECT_GT(roofline->copy_tb_s, 0);
  EXPECT_GT(roofline->tensor_tflop_s, 0);
}

}  // namespace
}  // namespace deltagauge::bench
