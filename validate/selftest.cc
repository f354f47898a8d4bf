// The judge judged: planted faults must be caught, correct variants must pass, over six input regimes (and five more that
// single faults need) and both 16-bit dtypes. Numerical faults and variants are held against the budget of chunk64.io,
// whatever they do themselves; memory faults go through the check that must catch them. gdn_decode then the same way.
#include <algorithm>
#include <cmath>
#include <exception>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/inputs.h"
#include "core/op.h"
#include "reference/faults.h"
#include "validate/checks/accuracy.h"
#include "validate/checks/check.h"
#include "validate/peers.h"
#include "validate/planted.h"
#include "validate/run.h"

namespace deltagauge::validate {
namespace {

using reports::Outcome;

struct Setting {
  std::string_view name, axes;
  bool f16 = true;      // false: bf16 only, since the state is out of f16's range
  bool chunks = false;  // other chunk sizes lose about as much as 64 does
};
// Four value heads on two key heads; ragged with an empty sequence, one over three chunks, a one-token tail, and rows past
// the active end. Chunks of 64 and 128 leave the same tails: with correlated keys the error of a state grows with the rows
// of its last chunk, so that only equal tails can be held to one budget.
constexpr std::string_view kSizes = "gdn/fwd/len=34+0+165+1,HK=2,HV=4,K=64,V=64,cap=203/";
constexpr Setting kSettings[] = {
    {"A strong gates, h0 N(0,1)", "gate=strong/h0=normal=1", true, true},
    {"B strong gates, h0 0", "gate=strong/h0=zero", true, true},
    {"C mild gates, h0 N(0,1)", "gate=mild/h0=normal=1", true, true},
    {"D mild gates, scale 1", "gate=mild/h0=normal=1/scale=1", true, true},
    {"E keys rho 0.9", "gate=mild/keys=rho=0.9/h0=normal=1", true, true},
    {"F strong gates, h0 100 N(0,1)", "gate=strong/h0=normal=100", true, true},
    {"G repeated keys, beta 0.835", "gate=constant=-0.001/keys=repeated/beta=const=0.835/h0=zero"},
    {"H mild gates, h0 1e6 N(0,1)", "gate=mild/h0=normal=1e6", false},
    {"I l2norm of small keys", "gate=mild/l2norm=on/kscale=0.001/h0=normal=1"},
    {"J raw gates of a model", "gate=model/raw_gate=on/h0=normal=1"},
    {"L lattice", "gate=none/data=lattice/h0=normal=1"},
};
// Correct ways that do not round as chunk64.io does. With repeated keys an error grows with the chunk, so that a kernel of
// another chunk size has to declare it.
struct Variant {
  std::string_view staging;
  bool other_chunk = false;
};
constexpr Variant kVariants[] = {{"chunk64.io"},    {"chunk16.io", true}, {"chunk32.io", true}, {"chunk128.io", true},
                                 {"chunk64.io.tc"}, {"chunk64.f32"},      {"recurrent.f32"},    {"chunk_sm80.split"}};

// One token a sequence: slots out of order with none for the second, fourth and sixth sequence, states unread, padding
// between slots, rows past the batch.
constexpr std::string_view kDecodeSizes =
    "gdn_decode/fwd/len=1x6,HK=2,HV=4,K=64,V=64,cap=8/slots=9/slot_pad=16/idx=holes=3/has=mixed/h0=normal=1/";
constexpr Setting kDecodeSettings[] = {
    {"P decode, gates of a model", "gate=model"},
    {"Q decode, strong gates", "gate=strong"},
    {"R decode, beta up to 2", "gate=mild/beta=wide/neg_eigval=on"},
    {"S decode, small keys", "gate=mild/kscale=0.001"},
};
constexpr Variant kDecodeVariants[] = {{"gdn_decode.f32"}};

struct Suite {
  std::string_view staging;  // where faults and variants are supposed to round
  std::string_view sizes;
  std::span<const Setting> settings;
  std::span<const Variant> variants;
};
constexpr Suite kSuites[] = {{"chunk64.io", kSizes, kSettings, kVariants},
                             {"gdn_decode.f32", kDecodeSizes, kDecodeSettings, kDecodeVariants}};

struct Judged {
  Selftest& total;
  std::string regime, io;

  void add(std::string_view variant, bool fault, const Verdict& verdict, std::string_view check,
           std::vector<std::string> by) {
    SelftestRow row{std::string(variant), regime, io, fault,        verdict.outcome == Outcome::fail,
                    std::string(check),   0,      0,  std::move(by)};
    for (const auto& [name, m] : verdict.tensors) {
      row.row_ratio = std::max(row.row_ratio, m.non_finite ? HUGE_VAL : m.row_ratio);
      row.element_ratio = std::max(row.element_ratio, m.non_finite ? HUGE_VAL : m.element_ratio);
    }
    fault ? ++total.faults : ++total.correct;
    if (fault) total.killed += row.caught;
    if (!fault) total.passed += verdict.outcome == Outcome::pass;
    total.rows.push_back(std::move(row));
  }
};

std::vector<std::string> rejecting_peers(Context& context, const Suite& suite, const Tensors& got) {
  std::vector<std::string> names;
  const Problem& problem = context.problem();
  for (const Peer& peer : peers()) {
    bool rejected = false;
    for (const TensorSpec& spec : op_info(problem.op).outputs(problem)) {
      const Yardstick& yard = context.output(suite.staging, spec.name);
      rejected = rejected || rejects(peer, problem.io, spec.name, get(got, spec.name), *yard.want, yard.rows);
    }
    if (rejected) names.emplace_back(peer.name);
  }
  return names;
}

PlantedBackend right_backend(const Suite& suite, const MemoryFault* fault) {
  return {"selftest", std::string(suite.staging),
          [&suite](const Problem& p, const Tensors& inputs, bool taps) {
            return reference::run(p, inputs, reference::staging(suite.staging), taps);
          },
          fault};
}

void judge_numbers(Context& context, const Suite& suite, const Setting& setting, std::string_view filter, Judged& judged) {
  const Problem& problem = context.problem();
  const auto& staging = reference::staging(suite.staging);
  for (const Variant& variant : suite.variants) {
    if (!glob_match(filter, variant.staging) || (variant.other_chunk && !setting.chunks)) continue;
    const Tensors got = reference::run(problem, context.inputs(), reference::staging(variant.staging), false);
    judged.add(variant.staging, false, judge_outputs(context, suite.staging, got), "accuracy",
               rejecting_peers(context, suite, got));
  }
  for (const reference::Fault& fault : reference::faults(problem.op)) {
    if (!glob_match(filter, fault.name) || !fault.shows(problem)) continue;
    const Tensors got = reference::run_with_fault(problem, context.inputs(), staging, fault);
    judged.add(fault.name, true, judge_outputs(context, suite.staging, got), "accuracy",
               rejecting_peers(context, suite, got));
  }
}

// The unspoiled backend through every check that is not accuracy, and each memory fault through its own.
void judge_memory(Context& context, const Suite& suite, std::string_view filter, Judged& judged) {
  const std::string right = std::string(suite.staging) + " every check";
  if (glob_match(filter, right)) {
    Verdict all;
    std::string passed;
    for (const Check* check : all_checks()) {
      const Verdict verdict = check->run(context, right_backend(suite, nullptr));
      if (verdict.outcome == Outcome::fail) all.add_failure(std::string(check->info().name) + ": " + verdict.reason);
      if (verdict.outcome == Outcome::pass) passed += (passed.empty() ? "" : " ") + std::string(check->info().name);
      for (const auto& [name, m] : verdict.tensors) all.tensors.emplace(name, m);
    }
    judged.add(right, false, all, passed, {});
  }
  for (const MemoryFault& fault : memory_faults()) {
    if (!glob_match(filter, fault.name) || !fault.shows(context.problem())) continue;
    const PlantedBackend backend = right_backend(suite, &fault);
    std::vector<std::string> by;  // peers' tolerances look at one answer only
    if (fault.check == "accuracy")
      by = rejecting_peers(context, suite, outputs_of(backend, context.problem(), context.inputs()));
    judged.add(fault.name, true, find_check(fault.check).run(context, backend), fault.check, std::move(by));
  }
}

Selftest judge_setting(const Suite& suite, const Setting& setting, DType io, std::string_view filter) {
  const std::string id = std::string(suite.sizes) + std::string(name(io)) + "/" + std::string(setting.axes) + "/seed=42";
  const SweepCase test{.test = parse_id(id), .name = {}, .note = {}, .checks = {}, .ceilings = {}};
  Context context(test, make_inputs(test.test), oracle::Precision::f64);
  Selftest result;
  Judged judged{result, std::string(setting.name), std::string(name(io))};
  judge_numbers(context, suite, setting, filter, judged);
  judge_memory(context, suite, filter, judged);
  return result;
}

}  // namespace

Selftest selftest(std::string_view filter) {
  struct Run {
    const Suite* suite;
    const Setting* setting;
    DType io;
  };
  std::vector<Run> runs;
  for (const Suite& suite : kSuites)
    for (const Setting& setting : suite.settings)
      for (const DType io : {DType::bf16, DType::f16})
        if (io == DType::bf16 || setting.f16) runs.push_back({&suite, &setting, io});
  std::vector<Selftest> parts(runs.size());
  std::vector<std::exception_ptr> errors(runs.size());
#pragma omp parallel for schedule(dynamic)
  for (std::size_t i = 0; i < runs.size(); ++i) try {
      parts[i] = judge_setting(*runs[i].suite, *runs[i].setting, runs[i].io, filter);
    } catch (...) {
      errors[i] = std::current_exception();
    }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  Selftest result;
  for (Selftest& part : parts) {
    std::move(part.rows.begin(), part.rows.end(), std::back_inserter(result.rows));
    result.faults += part.faults;
    result.killed += part.killed;
    result.correct += part.correct;
    result.passed += part.passed;
  }
  return result;
}

}  // namespace deltagauge::validate
