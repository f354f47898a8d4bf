#include "validate/cp/rank_run.h"

#include <algorithm>
#include <charconv>
#include <iostream>

#include "core/digest.h"
#include "core/error.h"
#include "core/inputs.h"
#include "kernels/cp/tables.h"
#include "reports/build_info.h"
#include "validate/cp/sharded.h"

namespace deltagauge::validate::cp {
namespace {

// `name` of every rank's answer, on every rank.
std::vector<Tensor> gathered(const Tensor& own, kernels::cp::Transport& transport) {
  std::vector<std::byte> all(own.nbytes() * transport.world());
  transport.all_gather(own.data(), all.data(), own.nbytes(), nullptr);
  std::vector<Tensor> tensors;
  for (std::size_t r = 0; r < transport.world(); ++r) {
    Tensor& t = tensors.emplace_back(own.dtype(), own.shape());
    std::copy_n(all.data() + r * own.nbytes(), own.nbytes(), t.data());
  }
  return tensors;
}

// What must be the same on every rank: what runs, the inputs, the plan. A line each.
struct Fact {
  const char* what;
  std::string text;
};
std::vector<Fact> facts_of(const Case& c, std::string_view op, const Tensors& inputs, const kernels::cp::Plan& plan) {
  const reports::Tool tool = reports::this_tool();
  std::string all, cuts = "segment " + std::to_string(plan.segment);
  for (const auto& [name, tensor] : inputs) all += (all.empty() ? "" : " ") + name + "=" + digest(tensor);
  for (const kernels::cp::RankPlan& rank : plan.ranks) {
    cuts += ", rank";
    for (const kernels::cp::Fragment& f : rank.fragments)
      cuts += " [" + std::to_string(f.first) + ", " + std::to_string(f.end) + ")";
  }
  return {{"build", tool.version + " " + tool.git_sha + (tool.dirty ? " modified" : "")},
          {"case", to_id(c)},
          {"op", std::string(op)},
          {"plan", cuts},
          {"digests of the inputs", all}};
}

// Before anything depends on it: a rank with another plan would wait for bytes that nobody sends.
void expect_agreement(const std::vector<Fact>& facts, kernels::cp::Transport& host) {
  for (const Fact& fact : facts) {
    std::size_t longest = fact.text.size() + 1;
    std::vector<std::size_t> sizes(host.world());
    host.all_gather(&longest, sizes.data(), sizeof longest, nullptr);
    longest = *std::ranges::max_element(sizes);
    std::string own = fact.text, all(longest * host.world(), '\0');
    own.resize(longest);
    host.all_gather(own.data(), all.data(), longest, nullptr);
    for (std::size_t r = 1; r < host.world(); ++r)
      if (const std::string first = all.data(), got = all.data() + r * longest; got != first)
        fail(fact.what, ": expected '", first, "' on every rank as on rank 0, got '", got, "' on rank ", r);
  }
}

std::int64_t number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) fail("SEGMENT: expected a number, got '", text, "'");
  return value;
}

}  // namespace

int run_as_rank(const std::vector<std::string>& args, const char* op_name, kernels::cp::Transport& host,
                kernels::cp::Transport& group) {
  const auto arg = [&](std::size_t i, const char* otherwise) { return i < args.size() ? args[i] : otherwise; };
  if (args.empty() || args.size() > 4) fail("expected CASE [TABLE] [SEGMENT] [OP], got ", args.size(), " arguments");
  const Case c = parse_id(args[0]);
  const std::string table = arg(1, "zigzag"), wanted = arg(3, op_name);
  const std::int64_t segment = number(arg(2, "128"));
  const StagedOps ops = all_ops();
  const StagedOp* op = nullptr;
  for (const auto& one : ops)
    if (one->name() == wanted) op = one.get();
  if (!op) fail("OP: expected a name that deltagauge cp --list shows, got '", wanted, "'");
  if (const auto why = op->unsupported(c.problem)) fail(op->name(), ": ", *why);

  const Tensors inputs = make_inputs(c);
  const auto documents = documents_of(c.problem);
  const auto world = static_cast<std::int64_t>(host.world());
  const auto plan = kernels::cp::plan(documents, kernels::cp::make_table(table, {documents, world, -1, 1}), segment);
  expect_agreement(facts_of(c, op->name(), inputs, plan), host);
  const auto caps = kernels::cp::caps_of(plan);
  const auto routing = kernels::cp::routing(plan, static_cast<std::int64_t>(host.rank()), caps);
  const Span span = span_of(c.problem, inputs, plan.ranks[host.rank()], caps);
  const RankAnswer own = op->rank(span, routing, group, false);

  const auto o = gathered(get(own.run, "o"), host), states = gathered(get(own.run, "final_state"), host);
  if (host.rank() != 0) return 0;
  std::vector<RankAnswer> answers(host.world());
  for (std::size_t r = 0; r < answers.size(); ++r) answers[r].run = {{"o", o[r]}, {"final_state", states[r]}};
  const Tensors got = assemble(c.problem, plan, answers);
  const Tensors want = assemble(c.problem, plan, run_ranks(*op, c.problem, inputs, plan, caps, false));
  int status = 0;
  for (const auto& [name, tensor] : want) {
    const bool same = bitwise_equal(get(got, name), tensor);
    std::cout << name << ": " << (same ? "the same bits" : "other bits") << " as " << world << " threads give\n";
    if (!same) status = 1;
  }
  return status;
}

}  // namespace deltagauge::validate::cp
