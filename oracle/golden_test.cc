// oracle/golden/<op>.json: tiny cases with their answers in 237 bits, rounded to double and written as hex floats, kept for
// ever. f64, double-double and 113 bits must come within the error of their arithmetic of them. A case that once showed a
// fault is added to the lists below; DELTAGAUGE_WRITE_GOLDEN=1 writes the files anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/inputs.h"
#include "oracle/error_bound.h"
#include "oracle/oracle.h"

namespace deltagauge::oracle {
namespace {

using Json = nlohmann::ordered_json;

struct Cases {
  std::string op;
  std::vector<std::string> ids;
  friend void PrintTo(const Cases& cases, std::ostream* out) { *out << cases.op; }
};
const Cases kCases[] = {{"gdn",
                         {"gdn/fwd/len=5+1,HK=1,HV=2,K=8,V=4/bf16/gate=mild/seed=1",
                          "gdn/fwd/len=6,HK=1,HV=1,K=4,V=6/bf16/gate=strong/h0=normal=1/seed=2",
                          "gdn/fwd/len=12,HK=1,HV=1,K=8,V=4/bf16/gate=none/keys=repeated/beta=near1/seed=3",
                          "gdn/fwd/len=12,HK=1,HV=1,K=8,V=4/bf16/gate=none/keys=alternating/beta=const=0.835/seed=4",
                          "gdn/fwd/len=12,HK=1,HV=1,K=8,V=3/bf16/gate=none/keys=two-interleaved/beta=wide/seed=5",
                          "gdn/fwd/len=10,HK=1,HV=1,K=8,V=4/bf16/gate=mixed/keys=rho=0.99/seed=6",
                          "gdn/fwd/len=16,HK=1,HV=1,K=4,V=4/f32/gate=edge/h0=normal=1/seed=7",
                          "gdn/fwd/len=4,HK=1,HV=1,K=4,V=8/bf16/gate=mild/h0=normal=10000/seed=8",
                          "gdn/fwd/len=4,HK=1,HV=1,K=6,V=12/f16/gate=constant=-5.914/h0=normal=1/state=bf16/seed=9",
                          "gdn/fwd/len=0+3+0+1+0,HK=2,HV=2,K=4,V=2,cap=6/bf16/gate=model/h0=normal=1/seed=10",
                          "gdn/fwd/len=5,HK=1,HV=1,K=8,V=4/bf16/gate=mild/l2norm=on/scale=1/seed=11",
                          "gdn/fwd/len=8,HK=1,HV=1,K=8,V=4/bf16/gate=none/keys=onehot/beta=tiny/h0=normal=1/seed=12",
                          "gdn/fwd/len=8,HK=1,HV=1,K=8,V=8/bf16/gate=none/data=lattice/h0=normal=1/scale=1/seed=13",
                          "gdn/fwd/len=6+2,HK=1,HV=2,K=6,V=4/bf16/gate=model/raw_gate=on/l2norm=on/h0=normal=1/seed=14",
                          "gdn/fwd/len=9,HK=1,HV=2,K=4,V=3/f32/gate=edge/raw_gate=on/h0=normal=1/seed=15",
                          "gdn/fwd/len=7,HK=1,HV=2,K=4,V=3/f16/gate=model/gdtype=bf16/raw_gate=on/transform=bounded/lb=-4/"
                          "h0=normal=1/seed=16",
                          "gdn/fwd/len=9,HK=1,HV=1,K=4,V=3/f32/gate=edge/raw_gate=on/transform=bounded/a_log=off/"
                          "h0=normal=1/seed=17"}},
                        {"gdn_decode",
                         {"gdn_decode/fwd/len=1x3,HK=1,HV=2,K=6,V=3/bf16/gate=model/h0=normal=1/slots=5/idx=3+-1+1/seed=1",
                          "gdn_decode/fwd/len=1x2,HK=2,HV=2,K=4,V=4/f32/gate=edge/h0=normal=100/slots=3/has=1+0/seed=2",
                          "gdn_decode/fwd/len=1x2,HK=1,HV=1,K=5,V=4/f16/gate=strong/beta=wide/neg_eigval=on/kscale=0.001/"
                          "h0=normal=1/slots=3/state=bf16/seed=3"}},
                        {"l2norm",
                         {"l2norm/fwd/len=3,HK=2,K=8/bf16/seed=1", "l2norm/fwd/len=2,HK=1,K=5/f32/v=normal=0.0001/seed=2",
                          "l2norm/fwd/len=2,HK=1,K=12/f16/v=normal=1000/seed=3"}},
                        {"gate",
                         {"gate/fwd/len=6,HV=4/bf16/seed=1", "gate/fwd/len=6,HV=4/f32/v=normal=30/transform=bounded/seed=2",
                          "gate/fwd/len=3,HV=2,K=5/bf16/v=normal=100/per=channel/seed=3",
                          "gate/fwd/len=3,HV=2,K=5/f16/per=channel/transform=bounded/lb=-4/a_log=off/seed=4"}}};

std::string path_of(const std::string& op) { return std::string(DELTAGAUGE_SOURCE_DIR "/oracle/golden/") + op + ".json"; }

// FNV-1a over the values of all inputs: a golden answer is worth nothing when the inputs are no longer those it was for.
std::string fingerprint(const Tensors& inputs) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const auto& [name, tensor] : inputs)
    for (const double x : to_f64(tensor))
      hash = (hash ^ std::bit_cast<std::uint64_t>(std::isnan(x) ? 0.0 : x)) * 0x100000001b3ull;
  std::ostringstream text;
  text << std::hex << hash;
  return text.str();
}

std::string hex(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%a", x);
  return text;
}

void write(const Cases& cases) {
  Json list = Json::array();
  for (const std::string& id : cases.ids) {
    const Case c = parse_id(id);
    const Tensors inputs = make_inputs(c);
    Json entry{{"case", to_id(c)}, {"inputs", fingerprint(inputs)}, {"outputs", Json::object()}};
    for (const auto& [name, tensor] : answer(c.problem, inputs, {.precision = Precision::oct}).outputs) {
      Json values = Json::array();
      for (const double x : to_f64(tensor)) values.push_back(hex(x));
      entry["outputs"][name] = std::move(values);
    }
    list.push_back(std::move(entry));
  }
  std::ofstream(path_of(cases.op)) << Json{{"schema", "deltagauge.golden/1"}, {"cases", list}}.dump(1) << "\n";
}

// How far each element of an output may lie from the golden one, beside the rounding of both to f64.
std::vector<double> allowed(const Case& c, const Tensors& inputs, const std::string& output, const std::vector<double>& want,
                            const Arithmetic& a) {
  const Problem& p = c.problem;
  std::vector<double> bound(want.size());
  if (p.op == "gdn") {
    const Bounds bounds = gdn_bounds(p, inputs, a);
    if (output == "o") return bounds.o;
    for (std::size_t i = 0; i < bound.size(); ++i) bound[i] = bounds.state[i / static_cast<std::size_t>(p.K)];
  } else if (p.op == "gdn_decode") {
    const Bounds bounds = gdn_decode_bounds(p, inputs, a);
    return output == "o" ? bounds.o : bounds.state;
  } else if (p.op == "l2norm") {  // half the sum's error, then eps, +, sqrt, 1 / and *
    for (std::size_t i = 0; i < bound.size(); ++i)
      bound[i] = kSlack * (a.dot(static_cast<double>(p.K)) / 2 + 5 * a.op) * std::abs(want[i]);
  } else {
    const std::vector<double> x = to_f64(get(inputs, "raw_gate")), bias = to_f64(get(inputs, "dt_bias"));
    for (std::size_t i = 0; i < bound.size(); ++i) {
      const double y = x[i] + bias[i % bias.size()];
      const std::size_t h = i % bias.size() / (p.per == "channel" ? static_cast<std::size_t>(p.K) : 1);
      bound[i] = gate_error(p, y, find(inputs, "A_log"), static_cast<std::int64_t>(h), a);
    }
  }
  return bound;
}

class Golden : public testing::TestWithParam<Cases> {};

TEST_P(Golden, AnswersAreMetByEveryPrecision) {
  const Cases& cases = GetParam();
  if (const char* asked = std::getenv("DELTAGAUGE_WRITE_GOLDEN"); asked && std::string_view(asked) == "1") write(cases);
  std::ifstream file(path_of(cases.op));
  ASSERT_TRUE(file) << path_of(cases.op);
  const Json golden = Json::parse(file)["cases"];
  ASSERT_EQ(golden.size(), cases.ids.size());
  for (std::size_t n = 0; n < golden.size(); ++n) {
    const Case c = parse_id(golden[n]["case"].get<std::string>());
    SCOPED_TRACE(to_id(c));
    ASSERT_EQ(c, parse_id(cases.ids[n]));
    const Tensors inputs = make_inputs(c);
    ASSERT_EQ(fingerprint(inputs), golden[n]["inputs"]) << "the generator gives other inputs than when this was written";
    for (const auto& [precision, arithmetic] :
         {std::pair{Precision::f64, kF64}, {Precision::dd, kDd}, {Precision::quad, kQuad}, {Precision::automatic, kF64}}) {
      const Answer got = answer(c.problem, inputs, {.precision = precision});
      ASSERT_EQ(got.outputs.size(), golden[n]["outputs"].size());
      for (const auto& [output, values] : golden[n]["outputs"].items()) {
        std::vector<double> want;
        for (const Json& text : values) want.push_back(std::strtod(text.get<std::string>().c_str(), nullptr));
        const std::vector<double> x = to_f64(get(got.outputs, output)), bound = allowed(c, inputs, output, want, arithmetic);
        ASSERT_EQ(x.size(), want.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
          ASSERT_EQ(std::isnan(x[i]), std::isnan(want[i])) << output << "[" << i << "]";
          if (std::isnan(x[i]) || x[i] == want[i]) continue;
          EXPECT_LE(std::abs(x[i] - want[i]), bound[i] + 0x1p-52 * std::abs(want[i]))
              << name(precision) << " " << output << "[" << i << "]";
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Oracle, Golden, testing::ValuesIn(kCases), [](const auto& test) { return test.param.op; });

}  // namespace
}  // namespace deltagauge::oracle
