#include "validate/mark.h"

#include <utility>

namespace deltagauge::validate {
namespace {

thread_local Recording* current = nullptr;

}  // namespace

Recording::Recording(bool on) : on_(on), outer_(std::exchange(current, this)), start_(std::chrono::steady_clock::now()) {}

Recording::~Recording() { current = outer_; }

std::vector<reports::Span> Recording::take() { return std::move(spans_); }

double Recording::now() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

Mark::Mark(const char* name)
    : recording_(current && current->on_ ? current : nullptr)
#if DELTAGAUGE_HAVE_CUDA
      ,
      range_(name)
#endif
{
  if (!recording_) return;
  index_ = recording_->spans_.size();
  recording_->spans_.push_back({.name = name, .depth = recording_->open_++, .start = recording_->now()});
}

Mark::~Mark() {
  if (!recording_) return;
  --recording_->open_;
  span()->seconds = recording_->now() - span()->start;
}

reports::Span* Mark::span() { return recording_ ? &recording_->spans_[index_] : nullptr; }

}  // namespace deltagauge::validate
