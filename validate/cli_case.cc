// deltagauge case show|dump: a case in words, and its tensors as safetensors.
#include <fmt/format.h>

#include <iostream>
#include <sstream>

#include "core/error.h"
#include "core/inputs.h"
#include "core/op.h"
#include "core/problem.h"
#include "reports/file.h"
#include "validate/cli.h"
#include "validate/cli_run.h"
#include "validate/safetensors.h"
#include "validate/tensors.h"

namespace deltagauge::validate::cli {
namespace {

bool belongs(const Axis& axis, std::string_view op) {
  std::istringstream words{std::string(axis.ops)};
  for (std::string word; words >> word;)
    if (word == "*" || word == op) return true;
  return false;
}

// What a distribution axis is at, in words; empty for other axes.
std::string regime_meaning(const Axis& axis, const std::string& value) {
  const std::string kind = value.substr(0, value.find('='));
  for (const RegimeInfo& regime : regimes())
    if (regime.axis == axis.name && regime.name.substr(0, regime.name.find('=')) == kind)
      return ": " + std::string(regime.meaning);
  return "";
}

// [B*T, ...] as [B, T, ...], which is how a file says that sequences are dense.
Tensor with_batch(const Tensor& t, const TensorSpec& spec, const Problem& p) {
  if (p.layout != Layout::dense || spec.token_dim != 0) return t;
  Shape shape = spec.shape;
  shape[0] = p.lengths[0];
  shape.insert(shape.begin(), p.sequences());
  return from_f64(t.dtype(), shape, to_f64(t));
}

}  // namespace

int case_show(const std::string& id) {
  const Case c = parse_id(id);
  const Problem& p = c.problem;
  const OpInfo& op = op_info(p.op);
  const Tensors inputs = make_inputs(c);
  std::cout << to_id(c) << "\n" << op.name << ": " << op.summary << "\n\n";
  Listing axis_list{{"axis", "value", "meaning"}, {}};
  for (const Axis& axis : axes()) {
    if (!belongs(axis, p.op)) continue;
    const std::string value = axis.get(c);
    axis_list.rows.push_back({std::string(axis.name), value, std::string(axis.meaning) + regime_meaning(axis, value)});
  }
  for (const Override& o : c.overrides) {
    std::string index;
    for (const std::string& i : o.index) index += (index.empty() ? "" : ",") + i;
    axis_list.rows.push_back({o.tensor + "[" + index + "]", fmt::format("{}", o.value), "set after drawing"});
  }
  std::cout << as_text(axis_list) << "\n";

  Listing tensor_list{{"tensor", "dtype", "shape", "least", "most", "mean", "rms", "not finite"}, {}};
  for (const TensorSpec& spec : op.inputs(p)) {
    const Tensor& t = get(inputs, spec.name);
    const Statistics s = statistics(spec.token_dim == 0 ? rows(t, 0, p.tokens()) : t);  // rows past the active end are NaN
    tensor_list.rows.push_back({spec.name, std::string(name(spec.dtype)), to_string(spec.shape),
                                fmt::format("{:.6g}", s.least), fmt::format("{:.6g}", s.most), fmt::format("{:.4g}", s.mean),
                                fmt::format("{:.4g}", s.rms), std::to_string(s.not_finite)});
  }
  for (const TensorSpec& spec : op.outputs(p))
    tensor_list.rows.push_back(
        {spec.name, std::string(name(spec.dtype)), to_string(spec.shape), "", "", "", "", "(output)"});
  std::cout << as_text(tensor_list) << "\n";
  const double flops = op.flops(p), bytes = op.bytes(p);
  std::cout << fmt::format("{} tokens in {} sequences; at least {:.4g} flop and {:.4g} bytes, {:.3g} flop a byte\n",
                           p.tokens(), p.sequences(), flops, bytes, bytes > 0 ? flops / bytes : 0);
  return 0;
}

int case_dump(const std::string& id, const std::string& out, const std::string& backend_name, const std::string& host) {
  const Case c = parse_id(id);
  require_writable_output("--out", out);
  const OpInfo& op = op_info(c.problem.op);
  const Tensors inputs = make_inputs(c);
  Safetensors content;
  content.metadata["deltagauge.case"] = to_id(c);
  for (const TensorSpec& spec : op.inputs(c.problem))
    content.tensors[spec.name] = with_batch(get(inputs, spec.name), spec, c.problem);
  if (!backend_name.empty()) {
    const Registry registry = all_backends(backend_name, host);
    const Backend& backend = registry.get(backend_name);
    if (const auto why = backend.unsupported(c.problem)) fail(backend_name, ": ", *why);
    const auto plan = backend.plan(c.problem, inputs, {});
    plan->run();
    const Tensors outputs = plan->outputs();
    for (const TensorSpec& spec : op.outputs(c.problem))
      content.tensors[spec.name] = with_batch(get(outputs, spec.name), spec, c.problem);
    content.metadata["deltagauge.backend"] = backend_name;
  }
  reports::write_file(out, to_safetensors(content));
  return 0;
}

}  // namespace deltagauge::validate::cli
