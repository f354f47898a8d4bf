// Joins the reports of the shards of one run.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "reports/report.h"

namespace deltagauge::reports::compare {

// Results in the order of the shards, then of each; host, start and words of the first, the first roofline that there is.
// Throws Error when there is none, when tool, device, configs or words differ, when one is unfinished, and unless each shard
// is there once. names: of the reports, for messages.
Report merge(std::span<const Report> shards, std::span<const std::string> names);

// Throws Error, beginning with where, when tool, device or configs differ: rows of the two do not belong in one report.
void require_same_run(const std::string& where, const Report& want, const Report& got);
// The same for words of a command that were brought into one form by the two below.
void require_same_words(const std::string& where, const std::vector<std::string>& want, const std::vector<std::string>& got);

// The words of a command without those that say where reports go and which part is run: outputs, --quiet, --shard, --resume.
std::vector<std::string> words_of_all(const std::vector<std::string>& argv);
// And without those that say how a verdict is come by: --isolate, --timeout, --shrink. What verdicts depend on.
std::vector<std::string> words_of_verdicts(const std::vector<std::string>& argv);

}  // namespace deltagauge::reports::compare
