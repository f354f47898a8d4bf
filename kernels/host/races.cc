#include "kernels/host/races.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>

#include "core/error.h"
#include "kernels/host/block.h"

namespace deltagauge::host {

Watch watch;

namespace {

constexpr unsigned kEngines = 128;  // of mbarriers and bulk stores

void join(Ticks& into, const Ticks& other) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], other[i]);
}
SharedTicks joined(const SharedTicks& a, const SharedTicks& b) {
  static thread_local SharedTicks last_a, last_b, last;  // threads of a block mostly ask for the same
  if (a == b || !b) return a;
  if (!a) return b;
  if (a == last_a && b == last_b) return last;
  auto both = std::make_shared<Ticks>(*a);
  join(*both, *b);
  last_a = a, last_b = b, last = both;
  return last;
}

}  // namespace

Races::Races(unsigned threads, char* memory, std::size_t bytes)
    : threads_(threads),
      memory_(memory),
      bytes_(bytes),
      views_(threads),
      ticks_(2 * threads + (threads + 31) / 32 + kEngines),
      pages_((bytes + kCell * kPage - 1) / (kCell * kPage)) {
  const auto none = std::make_shared<Ticks>(ticks_.size());
  for (View& view : views_) view = {{none, 1, 0}, {none, 0, 0}};
}

std::uint32_t Races::get(const Clock& clock, unsigned thread, unsigned who) const {
  return who == thread ? clock.own : who == threads_ + thread ? clock.copies : (*clock.base)[who];
}

void Races::give(unsigned thread, Join& to) {
  View& view = views_[thread];
  const auto add = [&](Ticks& ticks, SharedTicks& last, const Clock& clock) {
    if (ticks.empty()) ticks.resize(ticks_.size());
    if (last != clock.base) join(ticks, *clock.base), last = clock.base;
    ticks[thread] = std::max(ticks[thread], clock.own);
    ticks[threads_ + thread] = std::max(ticks[threads_ + thread], clock.copies);
  };
  add(to.seen, to.last_seen, view.seen);
  add(to.fenced, to.last_fenced, view.fenced);
  ++view.seen.own;
}
void Races::give(Join& to, unsigned engine, std::uint32_t tick) const {
  if (to.seen.empty()) to.seen.resize(ticks_.size()), to.fenced.resize(ticks_.size());
  to.seen[engine] = std::max(to.seen[engine], tick);
}
Races::Both Races::freeze(const Join& join) const {
  return {std::make_shared<Ticks>(join.seen), std::make_shared<Ticks>(join.fenced)};
}
void Races::take_all(unsigned thread, const Both& both) {
  View& view = views_[thread];
  view.seen.base = both.seen;
  view.fenced.base = both.fenced;
  view.fenced.own = std::max(view.fenced.own, (*both.fenced)[thread]);
  view.fenced.copies = std::max(view.fenced.copies, (*both.fenced)[threads_ + thread]);
}
void Races::take(unsigned thread, const Both& both) {
  const View& view = views_[thread];
  take_all(thread, {joined(view.seen.base, both.seen), joined(view.fenced.base, both.fenced)});
}

unsigned Races::engine_of(const void* owner) {
  const auto next = static_cast<unsigned>(ticks_.size() - kEngines + engines_.size());
  const auto [at, fresh] = engines_.try_emplace(owner, next);
  if (fresh && next >= ticks_.size()) fail("races: expected at most ", kEngines, " mbarriers and storing threads a block");
  return at->second;
}
void Races::take(unsigned thread, unsigned engine, std::uint32_t tick) {
  static thread_local SharedTicks last_from, last_to;
  static thread_local unsigned last_engine;
  SharedTicks& base = views_[thread].seen.base;
  if ((*base)[engine] >= tick) return;
  if (base != last_from || engine != last_engine || (*last_to)[engine] != tick) {
    auto other = std::make_shared<Ticks>(*base);
    (*other)[engine] = tick;
    last_from = base, last_engine = engine, last_to = other;
  }
  base = last_to;
}

void Races::by_thread(unsigned thread, const void* p, std::size_t bytes, bool write, const void* pc) {
  access(p, bytes, write,
         {views_[thread].seen.own, static_cast<std::uint16_t>(thread), false, static_cast<std::uint16_t>(thread), pc});
}
void Races::by_copy(unsigned thread, std::uint32_t group, const void* p, std::size_t bytes, const void* pc) {
  access(p, bytes, true,
         {group, static_cast<std::uint16_t>(threads_ + thread), false, static_cast<std::uint16_t>(thread), pc});
}
void Races::by_engine(unsigned thread, unsigned engine, std::uint32_t tick, const void* p, std::size_t bytes, bool write,
                      const char* what) {
  access(p, bytes, write, {tick, static_cast<std::uint16_t>(engine), true, static_cast<std::uint16_t>(thread), what});
}

// An asynchronous access comes behind an ordinary write only through a fence.
bool Races::ordered(const Access& before, bool write, const Access& own) const {
  const View& view = views_[own.thread];
  const Clock& clock = own.async && write && !before.async ? view.fenced : view.seen;
  return before.tick <= get(clock, own.thread, before.who);
}

void Races::access(const void* p, std::size_t bytes, bool write, const Access& own) {
  const auto offset = static_cast<std::size_t>(static_cast<const char*>(p) - memory_);
  if (offset >= bytes_) return;
  for (std::size_t c = offset / kCell; c <= (offset + bytes - 1) / kCell; ++c) {
    auto& page = pages_[c / kPage];
    if (!page) page = std::make_unique<Cell[]>(kPage);
    Cell& cell = page[c % kPage];
    if (cell.write.tick != 0 && !ordered(cell.write, true, own)) report(cell.write, true, own, write, c * kCell);
    if (write) {
      for (const Access& read : cell.reads)
        if (!ordered(read, false, own)) report(read, false, own, write, c * kCell);
      cell.reads.clear();
      cell.write = own;
    } else {
      std::erase_if(cell.reads,
                    [&](const Access& read) { return read.who == own.who || (!own.async && ordered(read, false, own)); });
      cell.reads.push_back(own);
    }
  }
}

std::string Races::words(const Access& access, bool write) {
  const std::string what = write ? "write" : "read";
  if (access.async) return what + " of " + static_cast<const char*>(access.pc);
  char place[32] = "";
  if (Dl_info info; dladdr(access.pc, &info) != 0)  // for addr2line
    std::snprintf(place, sizeof place, " at %#zx",
                  static_cast<std::size_t>(static_cast<const char*>(access.pc) - static_cast<const char*>(info.dli_fbase)));
  return what + place;
}
void Races::report(const Access& before, bool before_writes, const Access& own, bool write, std::size_t offset) {
  const bool unfenced =
      own.async && !before.async && before_writes && before.tick <= get(views_[own.thread].seen, own.thread, before.who);
  const std::string text = words(own, write) + " is not ordered behind " + words(before, before_writes) +
                           (unfenced ? " (no fence.proxy.async between)" : "");
  if (known_[text]++ == 0)
    found_.push_back(text + ": byte " + std::to_string(static_cast<long>(offset) - (shared_window() - memory_)) +
                     ", warps " + std::to_string(own.thread / 32) + " and " + std::to_string(before.thread / 32));
}

}  // namespace deltagauge::host

// What the compiler calls ahead of each access of the kernels' files (-fsanitize=thread, whose runtime is not linked).
#define DELTAGAUGE_SEEN(size, write)                                                                                 \
  if (const auto& w = deltagauge::host::watch; static_cast<std::size_t>(static_cast<char*>(p) - w.memory) < w.bytes) \
  w.races->by_thread(deltagauge::host::now.thread->index, p, size, write, __builtin_return_address(0))
#define DELTAGAUGE_ACCESS(size)                                               \
  void __tsan_read##size(void* p) { DELTAGAUGE_SEEN(size, false); }           \
  void __tsan_write##size(void* p) { DELTAGAUGE_SEEN(size, true); }           \
  void __tsan_unaligned_read##size(void* p) { DELTAGAUGE_SEEN(size, false); } \
  void __tsan_unaligned_write##size(void* p) { DELTAGAUGE_SEEN(size, true); }
extern "C" {
DELTAGAUGE_ACCESS(1)
DELTAGAUGE_ACCESS(2)
DELTAGAUGE_ACCESS(4)
DELTAGAUGE_ACCESS(8)
DELTAGAUGE_ACCESS(16)
void __tsan_read_range(void* p, std::size_t size) { DELTAGAUGE_SEEN(size, false); }
void __tsan_write_range(void* p, std::size_t size) { DELTAGAUGE_SEEN(size, true); }
void __tsan_init() {}
void __tsan_vptr_update(void**, void*) {}
char __tsan_atomic8_load(const volatile char* p, int) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }  // of static locals
}
