// Time of the forms on 8192 token-heads at K = V = 128 (items: token-heads).
#include <benchmark/benchmark.h>

#include "core/inputs.h"
#include "reference/staging.h"

namespace deltagauge::reference {
namespace {

void forward(benchmark::State& state, const char* name) {
  const Case c = parse_id("gdn/fwd/len=1024,HK=8,HV=8,K=128,V=128/bf16/gate=strong");
  const Tensors inputs = make_inputs(c);
  for (auto _ : state) benchmark::DoNotOptimize(run(c.problem, inputs, staging(name), false));
  state.SetItemsProcessed(state.iterations() * 8192);
}
BENCHMARK_CAPTURE(forward, recurrent_f32, "recurrent.f32")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(forward, chunk64_io, "chunk64.io")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(forward, chunk64_f64, "chunk64.f64")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(forward, chunk64_io_tc, "chunk64.io.tc")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(forward, chunk_sm80_split, "chunk_sm80.split")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace deltagauge::reference
