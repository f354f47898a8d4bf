// The CUDA backends: listed and asked for reasons in any build; plans where there is a GPU.
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "core/error.h"
#include "core/inputs.h"
#include "kernels/gdn/gdn.h"
#include "validate/run.h"

namespace deltagauge::validate {
namespace {

Problem problem(std::string_view id) { return parse_id(id).problem; }

struct CudaBackends : testing::Test {
  CudaBackends() { add_cuda_backends(registry); }
  Registry registry;
};

TEST_F(CudaBackends, ThereIsOneForEveryVariantAndStandaloneOp) {
  std::vector<std::string> want, got;
  for (const auto& variant : kernels::gdn::variants()) want.push_back("cuda.gdn." + std::string(variant.name));
  want.push_back("cuda.gdn_decode");
  want.push_back("cuda.l2norm");
  want.push_back("cuda.gate");
  for (const Backend* backend : registry.match("*")) got.emplace_back(backend->name());
  EXPECT_EQ(got, want);
}

TEST_F(CudaBackends, AProblemThatNoGpuCouldRunIsRefusedForThatReason) {
  const struct {
    std::string_view backend, id;
    std::string reason;
  } rows[] = {
      {"cuda.gdn.recurrent", "l2norm/fwd/len=4,HK=1,K=64/bf16", "op: expected gdn, got l2norm"},
      {"cuda.gdn.chunk_sm80", "gdn/fwd/len=4,K=96,V=192/bf16", "head sizes: expected K = V, 64 or 128, got K = 96, V = 192"},
      {"cuda.gdn.chunk_sm80", "gdn/fwd/len=4,K=64,V=64/f32", "io: expected one of bf16 f16, got f32"},
      {"cuda.gdn_decode", "gdn_decode/fwd/len=1x2,K=300,V=64/h0=zero/slots=3",
       "head sizes: expected K and V in [1, 256], got K = 300, V = 64"},
      {"cuda.l2norm", "l2norm/fwd/len=4,HK=1,K=2000/bf16", "K: expected a value in [1, 1024], got 2000"},
      {"cuda.gate", "gdn/fwd/len=4/bf16", "op: expected gate, got gdn"},
  };
  for (const auto& row : rows) {
    const Backend& backend = registry.get(row.backend);
    EXPECT_EQ(backend.unsupported(problem(row.id)).value_or(""), row.reason) << row.backend << " " << row.id;
    EXPECT_THROW(backend.plan(problem(row.id), {}, {}), Error);
  }
}

constexpr std::string_view kSupported[] = {
    "gdn/fwd/len=70+0+1,HK=1,HV=2,K=64,V=64,cap=80/bf16/h0=normal=1",
    "gdn/fwd/len=70x2,HK=1,HV=2,K=64,V=64/f16/layout=dense/l2norm=on/fast",
    "gdn_decode/fwd/len=1x5,HK=1,HV=2,K=64,V=64/bf16/h0=normal=1/slots=8/slot_pad=8/idx=holes=1/has=mixed",
    "l2norm/fwd/len=7+9,HK=3,K=60,cap=20/f16",
    "gate/fwd/len=7+9,HV=8,K=24,cap=20/bf16/per=channel/transform=bounded/a_log=off",
};

TEST_F(CudaBackends, OtherwiseOnlyTheGpuCanBeMissing) {
  for (const std::string_view id : kSupported)
    for (const Backend* backend : registry.match("*")) {
      const auto reason = backend->unsupported(problem(id));
      if (reason && !reason->starts_with("op: ")) {
        EXPECT_TRUE(reason->starts_with("no GPU: ")) << *reason;
      }
    }
}

TEST_F(CudaBackends, APlanRunsTwiceToTheSameBitsAndDamagesNothing) {
  const auto missing = registry.get("cuda.l2norm").unsupported(problem(kSupported[3]));
  const char* required = std::getenv("DELTAGAUGE_REQUIRE_GPU");
  if (missing && required && std::string_view(required) == "1") FAIL() << *missing;
  if (missing) GTEST_SKIP() << *missing;
  for (const std::string_view id : kSupported)
    for (const Backend* backend : registry.match("*")) {
      const Case c = parse_id(id);
      if (backend->unsupported(c.problem)) continue;
      const auto plan = backend->plan(c.problem, make_inputs(c), {.taps = true});
      plan->run();
      const Tensors first = plan->outputs();
      plan->run();
      const Tensors second = plan->outputs();
      for (const auto& [name, tensor] : first)
        EXPECT_TRUE(bitwise_equal(tensor, get(second, name))) << backend->name() << " " << name << " " << id;
      for (const std::string& damage : plan->audit()) ADD_FAILURE() << backend->name() << " " << id << ": " << damage;
      EXPECT_NE(dynamic_cast<DevicePlan*>(plan.get()), nullptr) << backend->name();
    }
}

}  // namespace
}  // namespace deltagauge::validate
