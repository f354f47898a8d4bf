// The CUDA backends: listed and asked for reasons in any build; plans where there is a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "core/error.h"
#include "core/inputs.h"
#include "kernels/cp/plan.h"
#include "kernels/gdn/gdn.h"
#include "reports/json.h"
#include "validate/ladder/promises.h"
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
      {"cuda.gdn.chunk_sm80", "gdn/fwd/len=4,K=64,V=64/f16/h0=normal=1e+09",
       "h0: expected a magnitude of at most 143982512 with io f16, got 1e+09"},
      {"cuda.gdn.recurrent", "gdn/fwd/len=4,K=64,V=64/bf16/v=normal=3e+38",
       "v: expected a magnitude of at most 2.55875091e+38 with io bf16, got 3e+38"},
      {"cuda.gdn.chunk_sm80", "gdn/fwd/len=4,K=64,V=64/bf16/h0=zero/slots=2/slot_pad=3",
       "slot_stride: expected a multiple of 16 bytes, got 16396"},
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

std::string recorded(const std::string& name) {
  return std::string(DELTAGAUGE_SOURCE_DIR) + "/reports/recorded/h200/" + name + ".json";
}

// What a variant declares is what the bisection found: the smallest largest_safe over the cases and math modes of each io,
// and nothing where all was safe to the end of the search.
TEST_F(CudaBackends, LimitsAreThoseOfTheRecordedFrontier) {
  using Key = std::tuple<std::string, std::string, DType>;  // backend, quantity, io
  std::map<Key, double> found, declared;
  std::set<std::pair<Key, MathMode>> searched;
  for (const char* report : {"frontier", "frontier_128"})
    for (const reports::Result& row : reports::load_report(recorded(report)).results) {
      if (row.check != "frontier" || row.outcome == reports::Outcome::skip) continue;
      const std::string value = row.values.begin()->first, quantity = value.substr(0, value.find('.'));
      const Problem p = problem(row.test);
      const Key key{row.backend, quantity, p.io};
      searched.insert({key, p.math});
      if (!row.values.contains(quantity + ".smallest_unsafe")) continue;
      const auto at = found.try_emplace(key, row.values.at(quantity + ".largest_safe")).first;
      at->second = std::min(at->second, row.values.at(quantity + ".largest_safe"));
    }
  std::set<std::string> known;
  for (const auto& variant : kernels::gdn::variants()) {
    const std::string backend = "cuda.gdn." + std::string(variant.name);
    known.insert(backend);
    for (const auto& limit : variant.limits) {
      const Key key{backend, std::string(limit.quantity), limit.io};
      EXPECT_TRUE(declared.emplace(key, limit.largest).second) << backend << " " << limit.quantity << " twice";
      for (const MathMode math : {MathMode::precise, MathMode::fast}) EXPECT_TRUE(searched.contains({key, math})) << backend;
    }
  }
  std::erase_if(found, [&](const auto& one) { return !known.contains(std::get<0>(one.first)); });
  EXPECT_EQ(declared, found);
}

TEST_F(CudaBackends, NothingThatPassedOnADeviceIsRefusedForItsSize) {
  int passed = 0;
  for (const char* name : {"smoke", "accuracy", "edge", "range", "cases", "perf"})
    for (const reports::Result& row : reports::load_report(recorded(name)).results) {
      if (!row.backend.starts_with("cuda.gdn.") || row.outcome != reports::Outcome::pass || row.tensors.empty()) continue;
      ++passed;
      const auto reason = registry.get(row.backend).unsupported(problem(row.test));
      EXPECT_TRUE(!reason || reason->starts_with("no GPU: ") || reason->starts_with("device: "))
          << row.test << ": " << *reason;
    }
  EXPECT_GT(passed, 1000);
}

std::vector<std::string> names(const std::vector<const Backend*>& backends) {
  std::vector<std::string> names;
  for (const Backend* backend : backends) names.emplace_back(backend->name());
  return names;
}

TEST_F(CudaBackends, PromiseTheBitsOfTheirSchedules) {
  const struct {
    std::string_view backend;
    std::vector<std::string> schedules;
  } rows[] = {
      {"cuda.gdn.recurrent", {"cuda.gdn.recurrent.static", "cuda.gdn.recurrent.persistent"}},
      {"cuda.gdn.chunk_sm80", {"cuda.gdn.chunk_sm80.static", "cuda.gdn.chunk_sm80.persistent"}},
      {"cuda.gdn.chunk_sm80_split", {"cuda.gdn.chunk_sm80_split.static", "cuda.gdn.chunk_sm80_split.persistent"}},
      {"cuda.gdn.chunk_sm90", {}},
      {"cuda.l2norm", {}},
  };
  for (const auto& row : rows) {
    const Promises* promises = promises_of(registry.get(row.backend));
    ASSERT_NE(promises, nullptr);
    EXPECT_EQ(names(promises->schedules()), row.schedules);
  }
  Registry cpu;
  add_cpu_backends(cpu);
  for (const Backend* backend : cpu.match("*")) {
    const Promises* promises = promises_of(*backend);
    EXPECT_TRUE(promises == nullptr || promises->schedules().empty()) << backend->name();
  }
}

TEST_F(CudaBackends, ChunkVariantsPromiseTheBitsOfTheirDegreesOfContextParallelism) {
  for (const Backend* backend : registry.match("*")) {
    const std::string name(backend->name());
    std::vector<std::string> want;
    const bool whole = name.starts_with("cuda.gdn.chunk_") &&  // its chunks are those that segments are made of
                       kernels::gdn::find_variant(name.substr(9)).chunk == kernels::cp::kChunk;
    if (whole) want = {name + ".cp1", name + ".cp2", name + ".cp3"};
    EXPECT_EQ(names(promises_of(*backend)->cp_degrees()), want);
    for (const Backend* degree : promises_of(*backend)->cp_degrees())
      EXPECT_EQ(degree->unsupported(problem("gdn/fwd/len=4,K=96,V=192/bf16")),
                backend->unsupported(problem("gdn/fwd/len=4,K=96,V=192/bf16")));
  }
}

constexpr std::string_view kSupported[] = {
    "gdn/fwd/len=70+0+1,HK=1,HV=2,K=128,V=128,cap=80/bf16/h0=normal=1",
    "gdn/fwd/len=70x2,HK=1,HV=2,K=64,V=64/f16/layout=dense/l2norm=on/fast",
    "gdn/fwd/len=70+0+1,HK=1,HV=2,K=128,V=128,cap=80/bf16/gate=model/gdtype=bf16/raw_gate=on/l2norm=on",
    "gdn/fwd/len=70x2,HK=1,HV=2,K=64,V=64/f16/layout=dense/raw_gate=on/transform=bounded/a_log=off/fast",
    "gdn_decode/fwd/len=1x5,HK=1,HV=2,K=64,V=64/bf16/h0=normal=1/slots=8/slot_pad=8/idx=holes=1/has=mixed",
    "l2norm/fwd/len=7+9,HK=3,K=60,cap=20/f16",
    "gate/fwd/len=7+9,HV=8,K=24,cap=20/bf16/per=channel/transform=bounded/a_log=off",
    "gdn/fwd/len=70+0+1+9,HK=1,HV=2,K=128,V=128,cap=90/bf16/h0=normal=1/slots=7/slot_pad=8/idx=holes=1/has=mixed",
};

TEST_F(CudaBackends, OtherwiseOnlyTheGpuCanBeMissing) {
  for (const std::string_view id : kSupported)
    for (const Backend* backend : registry.match("*")) {
      const auto reason = backend->unsupported(problem(id));
      // One variant takes bf16 and heads of 128 only, as the cases in bf16 have.
      if (!reason || reason->starts_with("op: ") || problem(id).io == DType::f16) continue;
      EXPECT_TRUE(reason->starts_with("no GPU: ")) << *reason;
    }
}

TEST_F(CudaBackends, APlanRunsTwiceToTheSameBitsAndDamagesNothing) {
  const auto missing = registry.get("cuda.l2norm").unsupported(problem(kSupported[5]));
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
      for (const auto& others : {promises_of(*backend)->schedules(), promises_of(*backend)->cp_degrees()})
        for (const Backend* other : others) {
          if (other->unsupported(c.problem)) continue;  // a pool, over ranks
          const auto again = other->plan(c.problem, make_inputs(c), {.taps = true});
          again->run();
          for (const auto& [name, tensor] : again->outputs())
            EXPECT_TRUE(bitwise_equal(tensor, get(first, name))) << other->name() << " " << name << " " << id;
        }
    }
}

}  // namespace
}  // namespace deltagauge::validate
