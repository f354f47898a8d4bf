#include "reports/compare/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "core/error.h"
#include "reports/compare/timing_change.h"

namespace deltagauge::reports::compare {
namespace {

using Key = std::tuple<std::string, std::string, std::string>;  // case, backend, check
using Rows = std::vector<const Result*>;                        // of one key, at most one a session

struct Side {
  std::map<Key, Rows> rows;
  std::vector<Key> order;
  std::size_t sessions = 0;
};

Side collect(std::span<const Report> reports, const char* side) {
  if (reports.empty()) fail(side, ": expected at least one report, got none");
  Side out;
  for (const Report& report : reports) {
    if (report.tool.git_sha != reports[0].tool.git_sha || report.tool.dirty != reports[0].tool.dirty)
      fail(side, ": expected sessions of one commit, ", reports[0].tool.git_sha, ", got ", report.tool.git_sha);
    ++out.sessions;
    std::set<Key> seen;
    for (const Result& row : report.results) {
      const Key key{row.test, row.backend, row.check};
      if (!seen.insert(key).second)
        fail(side, ": expected one row of each case, backend and check, got two of ", row.test, " ", row.backend, " ",
             row.check);
      Rows& rows = out.rows[key];
      if (rows.empty()) out.order.push_back(key);
      rows.push_back(&row);
    }
  }
  return out;
}

std::string described(const std::optional<Device>& device) {
  return device ? device->name + " (sm_" + std::to_string(device->sm) + ")" : "none";
}

void check_devices(const Report& base, const Report& other, const CompareOptions& options, std::set<std::string>& warnings) {
  if (described(base.device) != described(other.device)) {
    if (!options.across_devices)
      fail("device: expected ", described(base.device), " as in base, got ", described(other.device));
    warnings.insert("devices differ: " + described(base.device) + " and " + described(other.device));
  }
  if (!base.device || !other.device) return;
  const auto warn = [&](const char* what, int a, int b) {
    if (a != b) warnings.insert(std::string(what) + " differs: " + std::to_string(a) + " and " + std::to_string(b));
  };
  warn("driver", base.device->driver, other.device->driver);
  warn("runtime", base.device->runtime, other.device->runtime);
  warn("SM clock (MHz)", base.device->clock_mhz, other.device->clock_mhz);
  warn("memory clock (MHz)", base.device->memory_mhz, other.device->memory_mhz);
}

enum class State { absent, skipped, failed, passed };

// A row that was lost or failed in one session did so.
State state_of(const Rows& rows, std::size_t sessions) {
  State state = rows.size() < sessions ? State::absent : State::passed;
  for (const Result* row : rows) {
    if (row->outcome == Outcome::fail || row->outcome == Outcome::error) return State::failed;
    if (row->outcome == Outcome::skip && state == State::passed) state = State::skipped;
  }
  return state;
}

std::string reason(const Rows& rows) {
  for (const Result* row : rows)
    if (row->outcome != Outcome::pass) return row->reason.empty() ? std::string(name(row->outcome)) : row->reason;
  return "";
}

bool timed(const Rows& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const Result* row) { return row->timing.has_value(); });
}

void require_times(const std::string& test, const std::string& backend, const std::vector<double>& samples) {
  for (const double x : samples)
    if (!(std::isfinite(x) && x > 0)) fail(test, " ", backend, ": samples: expected positive times, got ", x);
}

std::vector<Session> sessions_of(const Rows& rows) {
  std::vector<Session> out;
  for (const Result* row : rows) {
    if (row->outcome != Outcome::pass || !row->timing || row->timing->samples.empty()) continue;
    require_times(row->test, row->backend, row->timing->samples);
    out.push_back(row->timing->samples);
  }
  return out;
}

std::optional<double> mean_sm_mhz(const Rows& rows) {
  double sum = 0;
  for (const Result* row : rows) {
    if (!row->timing || !row->timing->conditions.sm_mhz) return std::nullopt;
    sum += *row->timing->conditions.sm_mhz;
  }
  return sum / static_cast<double>(rows.size());
}

std::optional<double> worst_row_ratio(const Rows& rows) {
  std::optional<double> out;
  for (const Result* row : rows)
    for (const auto& [tensor, metrics] : row->tensors)
      if (!out || worse(metrics.row_ratio, *out)) out = metrics.row_ratio;
  return out;
}

std::vector<std::string> changed_bits(const Rows& base, const Rows& fresh) {
  const auto digests = [](const Rows& rows) {
    std::map<std::string, std::set<std::string>> out;
    for (const Result* row : rows)
      for (const auto& [output, digest] : row->digests) out[output].insert(digest);
    return out;
  };
  const auto before = digests(base), after = digests(fresh);
  std::vector<std::string> changed;
  for (const auto& [output, values] : before)
    if (const auto found = after.find(output); found != after.end() && found->second != values) changed.push_back(output);
  return changed;
}

void note(Pair& pair, const std::string& words) { pair.note += (pair.note.empty() ? "" : "; ") + words; }

void note_throttling(Pair& pair, const Rows& rows, const char* side) {
  std::set<std::string> reasons;
  for (const Result* row : rows)
    if (row->timing) reasons.insert(row->timing->conditions.throttle.begin(), row->timing->conditions.throttle.end());
  for (const std::string& words : reasons) note(pair, std::string(side) + " throttled: " + words);
}

// The verdict of a pair but for its times. Nullopt: there is nothing to say. Sets `timing` when its times decide.
std::optional<Pair> judge(const Key& key, const Rows& base, const Rows& fresh, const Side& after_side,
                          const std::map<std::pair<std::string, std::string>, std::string>& broken, bool& timing) {
  Pair pair;
  std::tie(pair.test, pair.backend, pair.check) = key;
  const State before = base.empty() ? State::absent : state_of(base, base.size());  // base may lack it in some sessions
  const State after = state_of(fresh, after_side.sessions);
  const bool bench = timed(base) || timed(fresh), was_judged = before == State::passed || before == State::failed;
  if (!was_judged && (after == State::absent || after == State::skipped)) return std::nullopt;
  if (after == State::absent || after == State::skipped) {
    pair.verdict = Verdict::missing;
    note(pair, after == State::skipped
                   ? "skipped: " + reason(fresh)
                   : "in " + std::to_string(fresh.size()) + " of " + std::to_string(after_side.sessions) + " reports");
    return pair;
  }
  pair.changed_bits = changed_bits(base, fresh);
  if (const auto was = worst_row_ratio(base), is = worst_row_ratio(fresh); was && is)
    pair.accuracy = AccuracyChange{*was, *is};
  const auto faulty = broken.find({pair.test, pair.backend});
  if (bench && (after == State::failed || faulty != broken.end())) {
    pair.verdict = Verdict::invalid;
    note(pair, after == State::failed ? reason(fresh) : faulty->second);
  } else if (!was_judged || (bench && before == State::failed)) {
    pair.verdict = Verdict::added;
    if (after == State::failed) note(pair, "fails: " + reason(fresh));
  } else if (bench) {
    timing = !sessions_of(base).empty() && !sessions_of(fresh).empty();
    if (!timing) pair.verdict = sessions_of(base).empty() ? Verdict::added : Verdict::missing, note(pair, "no samples");
    note_throttling(pair, base, "base");
    note_throttling(pair, fresh, "fresh");
  } else if (before != after) {
    pair.verdict = after == State::failed ? Verdict::regression : Verdict::improvement;
    note(pair, after == State::failed ? reason(fresh) : "failed: " + reason(base));
  } else if (after == State::failed) {
    note(pair, "still fails: " + reason(fresh));
  }
  return pair;
}

void judge_times(std::vector<Pair>& pairs, const CompareOptions& options) {
  std::vector<TimeChange*> changes;
  for (Pair& pair : pairs)
    if (pair.time) changes.push_back(&*pair.time);
  adjust(changes);
  for (Pair& pair : pairs) {
    if (!pair.time) continue;
    TimeChange in_time = *pair.time;
    in_time.cycles.reset();
    if (real(*pair.time, options))
      pair.verdict = pair.time->ratio.centre > 1 ? Verdict::regression : Verdict::improvement;
    else if (real(in_time, options))
      note(pair, "time moved with the SM clock; cycles did not");
  }
}

bool fails(const Pair& pair, const CompareOptions& options) {
  if (options.bits && !pair.changed_bits.empty()) return true;
  return pair.verdict == Verdict::regression || pair.verdict == Verdict::invalid ||
         (pair.verdict == Verdict::missing && !options.allow_missing);
}

}  // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::regression:
      return "regression";
    case Verdict::invalid:
      return "invalid";
    case Verdict::missing:
      return "missing";
    case Verdict::improvement:
      return "improvement";
    case Verdict::added:
      return "new";
    case Verdict::same:
      return "same";
  }
  return "same";
}

int Comparison::exit_status() const {
  if (std::any_of(pairs.begin(), pairs.end(), [](const Pair& pair) { return pair.failed; })) return 1;
  const bool compared = std::any_of(pairs.begin(), pairs.end(), [](const Pair& pair) {
    return pair.verdict != Verdict::added && pair.verdict != Verdict::missing;
  });
  return compared ? 0 : 3;
}

Comparison compare(std::span<const Report> base, std::span<const Report> fresh, const CompareOptions& options) {
  const Side before = collect(base, "base"), after = collect(fresh, "fresh");
  std::set<std::string> warnings;
  for (const auto side : {base, fresh})
    for (const Report& report : side) check_devices(base[0], report, options, warnings);

  std::map<std::pair<std::string, std::string>, std::string> broken;  // (case, backend) whose accuracy row fails, and why
  for (const auto& [key, rows] : after.rows)
    if (const auto& [test, backend, check] = key; check == "accuracy" && state_of(rows, rows.size()) == State::failed)
      broken[{test, backend}] = "accuracy fails: " + reason(rows);

  std::vector<Key> order = before.order;
  for (const Key& key : after.order)
    if (!before.rows.contains(key)) order.push_back(key);

  Comparison out;
  out.warnings.assign(warnings.begin(), warnings.end());
  std::vector<Sampled> sampled;
  std::vector<std::size_t> places;  // of sampled, in pairs
  std::vector<double> clocks;       // fresh / base, 0 when not known
  for (const Key& key : order) {
    const auto a = before.rows.find(key), b = after.rows.find(key);
    const Rows old_rows = a == before.rows.end() ? Rows{} : a->second, new_rows = b == after.rows.end() ? Rows{} : b->second;
    bool timing = false;
    std::optional<Pair> pair = judge(key, old_rows, new_rows, after, broken, timing);
    if (!pair) continue;
    out.pairs.push_back(std::move(*pair));
    if (!timing) continue;
    const auto was = mean_sm_mhz(old_rows), is = mean_sm_mhz(new_rows);
    sampled.push_back(sample_rows(sessions_of(old_rows), sessions_of(new_rows), options.confidence));
    places.push_back(out.pairs.size() - 1);
    clocks.push_back(was && is && *was > 0 ? *is / *was : 0);
  }
  out.session_sd = session_sd(sampled, options);
  for (std::size_t i = 0; i < sampled.size(); ++i) {
    TimeChange time = change(sampled[i], out.session_sd, sampled.size(), options);
    if (clocks[i] > 0) time.cycles = time.ratio.centre * clocks[i];
    out.pairs[places[i]].time = time;
  }
  judge_times(out.pairs, options);
  for (Pair& pair : out.pairs) pair.failed = fails(pair, options);
  return out;
}

Comparison compare(const Report& base, const Report& fresh, const CompareOptions& options) {
  return compare(std::span(&base, 1), std::span(&fresh, 1), options);
}

int blocks_needed(std::int64_t rows, double q_limit) {
  return static_cast<int>(std::floor(1 + std::log2(static_cast<double>(std::max<std::int64_t>(rows, 1)) / q_limit))) + 1;
}

Comparison compare_interleaved(std::span<const InterleavedRow> rows, const CompareOptions& options) {
  Comparison out;
  for (const InterleavedRow& row : rows) {
    const auto centre = [&](const std::vector<double>& samples) {
      require_times(row.test, row.backend, samples);
      return std::log(median(samples));
    };
    std::vector<double> base, fresh, differences;
    for (const Block& block : row.blocks) {
      base.push_back((centre(block.base_first) + centre(block.base_second)) / 2);
      fresh.push_back((centre(block.fresh_first) + centre(block.fresh_second)) / 2);
      differences.push_back(fresh.back() - base.back());
    }
    Pair pair;
    pair.test = row.test, pair.backend = row.backend, pair.check = row.check;
    if (differences.empty()) {
      pair.verdict = Verdict::missing;
      note(pair, "no blocks");
    } else {
      const Interval shift = hodges_lehmann(differences, options.confidence);
      const double se = (shift.high - shift.low) / (2 * z_of(1 - options.confidence));
      TimeChange time;
      time.base = std::exp(median(base));
      time.fresh = std::exp(median(fresh));
      time.ratio = {std::exp(shift.centre), std::exp(shift.low), std::exp(shift.high)};
      time.p = signed_rank(differences).p;
      const bool enough = static_cast<int>(differences.size()) >= blocks_needed(std::ssize(rows), options.q_limit);
      time.detectable =
          enough ? std::expm1(std::log1p(options.floor) + z_of(0.1) * se) : std::numeric_limits<double>::infinity();
      pair.time = time;
    }
    out.pairs.push_back(std::move(pair));
  }
  judge_times(out.pairs, options);
  for (Pair& pair : out.pairs) pair.failed = fails(pair, options);
  return out;
}

}  // namespace deltagauge::reports::compare
