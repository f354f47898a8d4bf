// Speed of the oracle: microseconds per token and value head of gdn at K = V = 128, and of the certified answer, on one and
// two threads. Goals on two ordinary cores: f64 at most 8, dd at most 70, 1.9 times as fast on two.
#include <benchmark/benchmark.h>
#include <omp.h>

#include "core/inputs.h"
#include "oracle/oracle.h"

namespace deltagauge {
namespace {

void gdn(benchmark::State& state, oracle::Precision precision) {
  omp_set_num_threads(static_cast<int>(state.range(0)));
  const Case c = parse_id("gdn/fwd/len=256,HK=4,HV=4,K=128,V=128/bf16/gate=mild/seed=1");
  const Tensors inputs = make_inputs(c);
  for (auto _ : state) benchmark::DoNotOptimize(oracle::answer(c.problem, inputs, {.precision = precision}));
  const double token_heads = static_cast<double>(c.problem.tokens() * c.problem.HV);
  state.counters["per_token_head"] =
      benchmark::Counter(token_heads, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

BENCHMARK_CAPTURE(gdn, f64, oracle::Precision::f64)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(gdn, dd, oracle::Precision::dd)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(gdn, automatic, oracle::Precision::automatic)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime();

}  // namespace
}  // namespace deltagauge
