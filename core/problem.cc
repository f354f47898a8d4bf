#include "core/problem.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "core/error.h"
#include "core/op.h"
#include "core/pool.h"

namespace deltagauge {
namespace {

std::string number_text(double x) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, x).ptr;
  return {buffer, end};
}

double number(std::string_view what, std::string_view text) {
  double value = 0;
  const bool plus = !text.empty() && text[0] == '+';
  const char *first = text.data() + (plus ? 1 : 0), *last = text.data() + text.size();
  const auto result = std::from_chars(first, last, value);
  if (result.ec != std::errc() || result.ptr != last) fail(what, ": expected a number, got '", text, "'");
  return value;
}

std::int64_t integer(std::string_view what, std::string_view text, std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  const char* last = text.data() + text.size();
  const auto result = std::from_chars(text.data(), last, value);
  if (result.ec != std::errc() || result.ptr != last || value < least || value > most)
    fail(what, ": expected an integer in [", least, ", ", most, "], got '", text, "'");
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

template <class Enum, std::size_t N>
Enum choose(std::string_view what, std::string_view text, const std::string_view (&names)[N]) {
  for (std::size_t i = 0; i < N; ++i)
    if (names[i] == text) return static_cast<Enum>(i);
  std::string known;
  for (const auto n : names) known += " " + std::string(n);
  fail(what, ": expected one of", known, ", got '", text, "'");
}
constexpr std::string_view kSwitch[] = {"off", "on"};
constexpr std::string_view kMath[] = {"precise", "fast"};
constexpr std::string_view kLayout[] = {"packed", "dense"};
constexpr std::string_view kDirection[] = {"fwd", "bwd"};

std::string lengths_text(const std::vector<std::int64_t>& lengths) {
  std::string text;
  for (std::size_t i = 0; i < lengths.size();) {
    std::size_t j = i;
    while (j < lengths.size() && lengths[j] == lengths[i]) ++j;
    if (i) text += '+';
    text += std::to_string(lengths[i]);
    if (j - i >= 3) {
      text += 'x' + std::to_string(j - i);
    } else {
      j = i + 1;
    }
    i = j;
  }
  return text;
}

constexpr std::int64_t kMaxTokens = std::int64_t{1} << 40, kMaxSequences = 1 << 24;

// Numbers as in 5+0+3x4: lengths or names of sequences.
std::vector<std::int64_t> parse_sequences(std::string_view axis, std::string_view text) {
  std::vector<std::int64_t> numbers;
  for (const auto part : split(text, '+')) {
    const auto x = part.find('x');
    const std::int64_t number = integer(axis, part.substr(0, x), 0, kMaxTokens);
    const std::int64_t count = x == std::string_view::npos ? 1 : integer(axis, part.substr(x + 1), 1, kMaxSequences);
    if (static_cast<std::int64_t>(numbers.size()) + count > kMaxSequences)
      fail(axis, ": expected at most ", kMaxSequences, " sequences, got more");
    numbers.insert(numbers.end(), static_cast<std::size_t>(count), number);
  }
  return numbers;
}

// The sum of lengths, or nothing past kMaxTokens.
std::optional<std::int64_t> total_tokens(const std::vector<std::int64_t>& lengths) {
  std::int64_t sum = 0;
  for (const std::int64_t length : lengths)
    if (length < 0 || length > kMaxTokens || (sum += length) > kMaxTokens) return std::nullopt;
  return sum;
}

std::vector<std::int64_t> parse_lengths(std::string_view text) {
  std::vector<std::int64_t> lengths = parse_sequences("len", text);
  if (!total_tokens(lengths)) fail("len: expected at most ", kMaxTokens, " tokens, got ", text);
  return lengths;
}

// A dtype among those that an axis takes.
DType parse_dtype_of(std::string_view axis, std::string_view values, std::string_view text) {
  for (const auto value : split(values, ' '))
    if (value == text) return parse_dtype(text);
  fail(axis, ": expected one of ", values, ", got '", text, "'");
}

struct RegimeShape {
  std::string_view axis, kind;
  char argument;  // '-' none, 'r' required, 'o' optional
  double low, high;
};
constexpr double kAny = std::numeric_limits<double>::infinity();
constexpr RegimeShape kRegimes[] = {
    {"keys", "iid", '-', 0, 0},
    {"keys", "rho", 'r', 0, 1},
    {"keys", "repeated", '-', 0, 0},
    {"keys", "alternating", '-', 0, 0},
    {"keys", "two-interleaved", '-', 0, 0},
    {"keys", "onehot", '-', 0, 0},
    {"gate", "none", '-', 0, 0},
    {"gate", "mild", '-', 0, 0},
    {"gate", "strong", '-', 0, 0},
    {"gate", "mixed", '-', 0, 0},
    {"gate", "model", '-', 0, 0},
    {"gate", "edge", '-', 0, 0},
    {"gate", "constant", 'r', -kAny, 0},
    {"beta", "sigmoid", '-', 0, 0},
    {"beta", "const", 'r', 0, 2},
    {"beta", "tiny", '-', 0, 0},
    {"beta", "near1", '-', 0, 0},
    {"beta", "wide", '-', 0, 0},
    {"v", "normal", 'r', 0, kAny},
    {"h0", "none", '-', 0, 0},
    {"h0", "zero", '-', 0, 0},
    {"h0", "normal", 'r', 0, kAny},
    {"data", "random", '-', 0, 0},
    {"data", "lattice", '-', 0, 0},
    {"data", "file", '-', 0, 0},
};

Regime parse_regime(std::string_view axis, std::string_view text) {
  const auto eq = text.find('=');
  const std::string_view kind = text.substr(0, eq);
  std::string known;
  for (const auto& r : kRegimes) {
    if (r.axis != axis) continue;
    known += " " + std::string(r.kind) + (r.argument == '-' ? "" : "=NUMBER");
    if (r.kind != kind) continue;
    if (r.argument == '-') {
      if (eq != std::string_view::npos) fail(axis, "=", kind, ": takes no number, got '", text, "'");
      return {std::string(kind)};
    }
    if (eq == std::string_view::npos) fail(axis, "=", kind, ": needs a number, as in ", axis, "=", kind, "=0.5");
    const double value = number(axis, text.substr(eq + 1));
    if (!(value >= r.low && value <= r.high))
      fail(axis, "=", kind, ": expected a number in [", r.low, ", ", r.high, "], got ", text.substr(eq + 1));
    return {std::string(kind), value, true};
  }
  fail(axis, ": expected one of", known, ", got '", text, "'");
}

std::string one_of(std::string_view what, std::string_view text, std::string_view a, std::string_view b) {
  if (text != a && text != b) fail(what, ": expected ", a, " or ", b, ", got '", text, "'");
  return std::string(text);
}

constexpr std::int64_t kMaxHeads = 1 << 20, kMaxHeadSize = 1 << 16;
#define SIZE(field, most)                                        \
  [](const Case& c) { return std::to_string(c.problem.field); }, \
      [](Case& c, std::string_view t) { c.problem.field = integer(#field, t, 1, most); }
#define DTYPE(field, axis, values)                                  \
  [](const Case& c) { return std::string(name(c.problem.field)); }, \
      [](Case& c, std::string_view t) { c.problem.field = parse_dtype_of(axis, values, t); }
#define CHOICE(field, names, what)                                                     \
  [](const Case& c) { return std::string(names[static_cast<int>(c.problem.field)]); }, \
      [](Case& c, std::string_view t) { c.problem.field = choose<decltype(c.problem.field)>(what, t, names); }
#define REAL(field, what)                                     \
  [](const Case& c) { return number_text(c.problem.field); }, \
      [](Case& c, std::string_view t) { c.problem.field = number(what, t); }
#define REGIME(field)                                       \
  [](const Case& c) { return to_string(c.problem.field); }, \
      [](Case& c, std::string_view t) { c.problem.field = parse_regime(#field, t); }

// The order here is the order in an id.
constexpr Axis kAxes[] = {
    {"len", "L+L+..., LxN", "tokens of each sequence", "*", [](const Case& c) { return lengths_text(c.problem.lengths); },
     [](Case& c, std::string_view t) { c.problem.lengths = parse_lengths(t); }},
    {"HK", "1..", "query and key heads; of l2norm, the heads", "gdn gdn_decode l2norm", SIZE(HK, kMaxHeads)},
    {"HV", "1..", "value heads, a multiple of HK", "gdn gdn_decode gate", SIZE(HV, kMaxHeads)},
    {"K", "1..", "key head size", "gdn gdn_decode l2norm gate", SIZE(K, kMaxHeadSize)},
    {"V", "1..", "value head size", "gdn gdn_decode", SIZE(V, kMaxHeadSize)},
    {"cap", "0..", "physical token rows T; 0: the sum of len", "*",
     [](const Case& c) { return std::to_string(c.problem.capacity); },
     [](Case& c, std::string_view t) { c.problem.capacity = integer("cap", t, 0, kMaxTokens); }},
    {"ids", "I+I+...", "sequence names for the input generator; default 0+1+2+...", "*",
     [](const Case& c) { return lengths_text(c.problem.ids); },
     [](Case& c, std::string_view t) {
       c.problem.ids = t.empty() ? std::vector<std::int64_t>{} : parse_sequences("ids", t);
     }},
    {"io", "bf16 f16 f32", "dtype of q k v o", "*", DTYPE(io, "io", "bf16 f16 f32")},
    {"gate", "see list regimes", "distribution of g", "gdn gdn_decode", REGIME(gate)},
    {"keys", "see list regimes", "distribution of k and q", "gdn gdn_decode", REGIME(keys)},
    {"math", "precise fast", "exponentials: correctly rounded, or approximate", "*", CHOICE(math, kMath, "math")},
    {"beta", "see list regimes", "distribution of beta", "gdn gdn_decode", REGIME(beta)},
    {"v", "normal=S", "values N(0, S^2); of l2norm and gate: of x", "*", REGIME(v)},
    {"h0", "none zero normal=S", "initial state: absent, zero, N(0, S^2)", "gdn gdn_decode", REGIME(h0)},
    {"data", "random lattice file", "lattice: every stage is exact in bf16 and f16; file: given, not drawn", "gdn",
     REGIME(data)},
    {"kscale", "0..", "norm of the keys before rounding", "gdn gdn_decode", REAL(kscale, "kscale")},
    {"layout", "packed dense", "dense: equal lengths, no cu_seqlens", "*", CHOICE(layout, kLayout, "layout")},
    {"state", "f32 bf16", "dtype of initial_state and final_state", "gdn gdn_decode", DTYPE(state, "state", "f32 bf16")},
    {"gdtype", "f32 bf16 f16", "dtype of g, of raw_gate", "gdn gdn_decode", DTYPE(gate_dtype, "gdtype", "f32 bf16 f16")},
    {"bdtype", "f32 bf16 f16", "dtype of beta", "gdn gdn_decode", DTYPE(beta_dtype, "bdtype", "f32 bf16 f16")},
    {"chunk", "1..", "chunk of the compared taps", "gdn", SIZE(chunk, kMaxHeads)},
    {"scale", "X", "scale of q; 0: K^-1/2", "gdn gdn_decode", REAL(scale, "scale")},
    {"l2norm", "on off", "normalise q and k inside the call", "gdn", CHOICE(l2norm, kSwitch, "l2norm")},
    {"final", "on off", "ask for the final state", "gdn", CHOICE(final_state, kSwitch, "final")},
    {"slots", "0..", "slots P of the state pool, slot 0 reserved; 0: no pool", "gdn gdn_decode",
     [](const Case& c) { return std::to_string(c.problem.slots); },
     [](Case& c, std::string_view t) { c.problem.slots = integer("slots", t, 0, kMaxSequences); }},
    {"slot_pad", "0..", "elements between two slots of the pool", "gdn gdn_decode",
     [](const Case& c) { return std::to_string(c.problem.slot_pad); },
     [](Case& c, std::string_view t) { c.problem.slot_pad = integer("slot_pad", t, 0, kMaxTokens); }},
    {"idx", "iota permuted holes I+I+...", "slots of the sequences; permuted=S, holes=S: by that seed", "gdn gdn_decode",
     [](const Case& c) { return c.problem.idx; }, [](Case& c, std::string_view t) { c.problem.idx = pool::parse_idx(t); }},
    {"has", "on off mixed I+I+...", "has_initial_state of the sequences; off: the slot is overwritten unread",
     "gdn gdn_decode", [](const Case& c) { return c.problem.has; },
     [](Case& c, std::string_view t) { c.problem.has = pool::parse_has(t); }},
    {"raw_gate", "on off", "on: raw_gate, A_log and dt_bias in place of g, transformed inside the call", "gdn",
     CHOICE(raw_gate, kSwitch, "raw_gate")},
    {"transform", "softplus bounded", "kind of gate transform", "gdn gate",
     [](const Case& c) { return c.problem.transform; },
     [](Case& c, std::string_view t) { c.problem.transform = one_of("transform", t, "softplus", "bounded"); }},
    {"per", "head channel", "gate per value head or per key channel", "gate", [](const Case& c) { return c.problem.per; },
     [](Case& c, std::string_view t) { c.problem.per = one_of("per", t, "head", "channel"); }},
    {"lb", "X <= 0", "lower bound of the bounded transform", "gdn gate", REAL(lower_bound, "lb")},
    {"a_log", "on off", "off: A_log is absent, a = 1", "gdn gate", CHOICE(a_log, kSwitch, "a_log")},
    {"neg_eigval", "on off", "on: beta = 2 sigmoid(raw_beta)", "gdn_decode", CHOICE(neg_eigval, kSwitch, "neg_eigval")},
    {"diverge", "on off", "on: allow inputs whose recurrence grows without bound", "gdn",
     CHOICE(diverge, kSwitch, "diverge")},
    {"seed", "0..", "seed of the inputs", "*", [](const Case& c) { return std::to_string(c.seed); },
     [](Case& c, std::string_view t) {
       c.seed = static_cast<std::uint64_t>(integer("seed", t, 0, std::numeric_limits<std::int64_t>::max()));
     }},
};
#undef SIZE
#undef DTYPE
#undef CHOICE
#undef REAL
#undef REGIME

bool belongs(const Axis& axis, std::string_view op) {
  if (axis.ops == "*") return true;
  for (const auto part : split(axis.ops, ' '))
    if (part == op) return true;
  return false;
}

// Axes that stand in the id even at their default, so that a reader sees the common ones.
bool always_shown(std::string_view axis) {
  for (const std::string_view a : {"len", "HK", "HV", "K", "V", "io", "gate", "keys", "math", "seed"})
    if (a == axis) return true;
  return false;
}
bool is_size(std::string_view axis) {
  for (const std::string_view a : {"len", "HK", "HV", "K", "V", "cap", "ids"})
    if (a == axis) return true;
  return false;
}

std::string override_text(const Override& o) {
  std::string text = o.tensor + "[";
  for (std::size_t i = 0; i < o.index.size(); ++i) text += (i ? "," : "") + o.index[i];
  return text + "]=" + number_text(o.value);
}

Override parse_override(std::string_view text) {
  const auto open = text.find('['), close = text.find("]=");
  if (open == 0 || open == std::string_view::npos || close == std::string_view::npos || close < open)
    fail("override: expected tensor[index,...]=value, got '", text, "'");
  for (const char c : text.substr(0, open))
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_')
      fail("override: expected a tensor's name before [, got '", text.substr(0, open), "'");
  Override o{std::string(text.substr(0, open)), {}, number("override " + std::string(text), text.substr(close + 2))};
  for (const auto part : split(text.substr(open + 1, close - open - 1), ',')) {
    const auto ends = split(part, ':');
    if (ends.size() > 2) fail("override ", text, ": expected a number, a range a:b or *, got '", part, "'");
    std::int64_t before = -1;
    if (part != "*")
      for (const auto end : ends) {
        const std::int64_t at = integer("override " + std::string(text), end, 0, kMaxTokens);
        if (at <= before) fail("override ", text, ": expected a range a:b with a < b, got '", part, "'");
        before = at;
      }
    o.index.emplace_back(part);
  }
  return o;
}

}  // namespace

std::string to_string(const Regime& r) { return r.has_value ? r.kind + "=" + number_text(r.value) : r.kind; }

std::int64_t Problem::tokens() const { return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}); }
double Problem::q_scale() const { return scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(K)); }
std::vector<std::int64_t> Problem::offsets() const {
  std::vector<std::int64_t> offsets{0};
  for (const std::int64_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

std::span<const Axis> axes() { return kAxes; }

void set_axis(Case& c, std::string_view axis_name, std::string_view text) {
  std::string known;
  for (const Axis& axis : kAxes) {
    if (!belongs(axis, c.problem.op)) continue;
    if (axis.name == axis_name) return axis.set(c, text);
    known += " " + std::string(axis.name);
  }
  fail("axis '", axis_name, "' is not one of op ", c.problem.op, ":", known);
}

std::string to_id(const Case& c) {
  Case defaults;
  defaults.problem.op = c.problem.op;
  std::string id = c.problem.op + "/" + std::string(kDirection[static_cast<int>(c.problem.direction)]) + "/";
  std::string sizes, rest;
  for (const Axis& axis : kAxes) {
    if (!belongs(axis, c.problem.op)) continue;
    const std::string text = axis.get(c);
    if (!always_shown(axis.name) && text == axis.get(defaults)) continue;
    if (is_size(axis.name)) {
      sizes += (sizes.empty() ? "" : ",") + std::string(axis.name) + "=" + text;
    } else if (axis.name == "io" || axis.name == "math") {
      rest += "/" + text;
    } else if (axis.name != "seed") {
      rest += "/" + std::string(axis.name) + "=" + text;
    }
  }
  for (const Override& o : c.overrides) rest += "/" + override_text(o);
  return id + sizes + rest + "/seed=" + std::to_string(c.seed);
}

Case parse_id(std::string_view id) {
  const auto parts = split(id, '/');
  if (parts.size() < 3) fail("case id: expected op/direction/len=...,..., got '", id, "'");
  Case c;
  c.problem.op = std::string(op_info(parts[0]).name);
  c.problem.direction = choose<Direction>("case id: direction", parts[1], kDirection);
  std::vector<std::string_view> seen;
  const auto set = [&](std::string_view axis, std::string_view text) {
    if (std::find(seen.begin(), seen.end(), axis) != seen.end())
      fail("case id: axis '", axis, "' stands twice in '", id, "'");
    seen.push_back(axis);
    set_axis(c, axis, text);
  };
  for (const auto part : split(parts[2], ',')) {
    const auto eq = part.find('=');
    if (eq == std::string_view::npos || !is_size(part.substr(0, eq)))
      fail("case id: expected sizes such as len=64,HK=1, got '", part, "'");
    set(part.substr(0, eq), part.substr(eq + 1));
  }
  for (std::size_t i = 3; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    const auto eq = part.find('='), open = part.find('[');
    if (open != std::string_view::npos && open < eq) {
      c.overrides.push_back(parse_override(part));
    } else if (eq != std::string_view::npos) {
      set(part.substr(0, eq), part.substr(eq + 1));
    } else if (part == kMath[0] || part == kMath[1]) {
      set("math", part);
    } else {
      set("io", part);
    }
  }
  check(c.problem);
  return c;
}

void check(const Problem& p) {
  const auto need = [](bool ok, const auto&... what) {
    if (!ok) fail(what...);
  };
  const auto holds = [](double x) {  // as a finite f32 other than 0, which is what a kernel gets
    return static_cast<float>(x) != 0 && std::isfinite(static_cast<float>(x));
  };
  constexpr std::int64_t kMaxPacked = std::numeric_limits<std::int32_t>::max();
  const OpInfo& op = op_info(p.op);
  need(p.direction == Direction::fwd, "direction: expected fwd, got bwd (op ", p.op, " has no backward)");
  need(!p.lengths.empty(), "len: expected at least one sequence, got none");
  need(p.lengths.size() <= kMaxSequences, "len: expected at most ", kMaxSequences, " sequences, got ", p.lengths.size());
  need(total_tokens(p.lengths).has_value(), "len: expected lengths >= 0 and at most ", kMaxTokens, " tokens in all");
  const bool one_token = std::all_of(p.lengths.begin(), p.lengths.end(), [](std::int64_t length) { return length == 1; });
  if (op.one_token && !one_token)
    fail("len: expected one token a sequence for op ", p.op, ", got ", lengths_text(p.lengths));
  need(p.layout == Layout::dense || p.tokens() <= kMaxPacked, "len: expected at most ", kMaxPacked,
       " packed tokens (cu_seqlens is int32), got ", p.tokens());
  need(p.ids.empty() || p.ids.size() == p.lengths.size(), "ids: expected one per sequence (", p.lengths.size(), "), got ",
       p.ids.size());
  need(p.capacity == 0 || p.capacity >= p.tokens(), "cap: expected at least the ", p.tokens(), " tokens of len, got ",
       p.capacity);
  for (const auto& [axis, heads] : {std::pair{"HK", p.HK}, {"HV", p.HV}})
    need(heads >= 1 && heads <= kMaxHeads, axis, ": expected a number in [1, ", kMaxHeads, "], got ", heads);
  for (const auto& [axis, size] : {std::pair{"K", p.K}, {"V", p.V}})
    need(size >= 1 && size <= kMaxHeadSize, axis, ": expected a number in [1, ", kMaxHeadSize, "], got ", size);
  const bool shares_keys = p.op == "gdn" || p.op == "gdn_decode";
  need(!shares_keys || p.HV % p.HK == 0, "HV: expected a multiple of HK = ", p.HK, ", got ", p.HV);
  for (const auto& [axis, dtype] : {std::pair{"io", p.io}, {"gdtype", p.gate_dtype}, {"bdtype", p.beta_dtype}})
    need(is_float(dtype) && dtype != DType::f64, axis, ": expected f32, bf16 or f16, got ", name(dtype));
  need(p.state == DType::f32 || p.state == DType::bf16, "state: expected f32 or bf16, got ", name(p.state));
  need(p.scale == 0 || (p.scale > 0 && holds(p.scale)), "scale: expected 0 or a positive number that f32 holds, got ",
       p.scale);
  need(std::isfinite(p.kscale) && p.kscale >= 0, "kscale: expected a finite number >= 0, got ", p.kscale);
  need(p.lower_bound == 0 || (p.lower_bound < 0 && holds(p.lower_bound)), "lb: expected a number <= 0 that f32 holds, got ",
       p.lower_bound);
  if (p.layout == Layout::dense) {
    for (const std::int64_t length : p.lengths)
      need(length == p.lengths[0], "layout=dense: expected equal lengths, got ", lengths_text(p.lengths));
    need(p.capacity == 0 || p.capacity == p.tokens(), "layout=dense: expected cap to be the ", p.tokens(), " tokens, got ",
         p.capacity);
  }
  if (p.op == "gdn" && p.raw_gate == Switch::off) {
    const Problem plain;
    for (const auto& [axis, same] : {std::pair{"transform", p.transform == plain.transform},
                                     {"lb", p.lower_bound == plain.lower_bound},
                                     {"a_log", p.a_log == plain.a_log}})
      need(same, axis, ": expected raw_gate=on beside it, since g is no raw gate, got raw_gate=off");
  }
  const bool bounded = p.op == "gdn" && p.transform == "bounded";
  need(!(bounded && p.gate.kind == "constant" && p.gate.value < p.lower_bound), "gate=constant: expected a number in [",
       p.lower_bound, ", 0], which transform=bounded reaches, got ", p.gate.value);
  pool::check(p);
  if (p.data.kind == "lattice")
    need(p.keys.kind == "iid" && p.beta.kind == "sigmoid" && p.kscale == 1,
         "data=lattice: expected keys, beta and kscale at their defaults, since the lattice draws its own");
  if (p.data.kind == "lattice") {
    int exponent = 0;
    need(std::frexp(p.q_scale(), &exponent) == 0.5, "data=lattice: expected a scale that is a power of two (scale=1), got ",
         p.q_scale());
    need(p.gate.kind == "none" || p.gate.kind == "edge", "data=lattice: expected gate none or edge, got ",
         to_string(p.gate));
    need(p.gate.kind == "none" || !bounded,
         "data=lattice: expected gate none with transform=bounded, whose gates end at lb, got edge");
    need(p.l2norm == Switch::off, "data=lattice: expected l2norm=off, got on");
  }
}

}  // namespace deltagauge
