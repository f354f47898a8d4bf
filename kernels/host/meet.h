// Lanes of a warp that meet: each brings what it has, the last one to come acts for all.
#pragma once
#include <bit>
#include <string>

#include "core/error.h"
#include "kernels/host/block.h"

namespace deltagauge::host {

struct WaitForLanes final : Condition {
  const Meeting& meeting;
  const std::uint64_t turn;
  explicit WaitForLanes(const Meeting& m) : meeting(m), turn(m.turn) {}
  bool ready() override { return meeting.turn != turn; }
  std::string describe() const override {
    return std::string(meeting.what) + " with " + std::to_string(std::popcount(meeting.mask & ~meeting.here)) +
           " lanes of its warp that are not there";
  }
};

// act(of): of[i] is what lane i brought, of those in mask.
template <class T, class Act>
void meet(const char* what, unsigned mask, T& mine, const Act& act) {
  Warp& warp = now.warp();
  if (!(mask >> now.lane() & 1)) fail(what, ": expected a mask with the lane itself, got ", mask);
  Meeting* meeting = nullptr;
  for (Meeting& m : warp.meetings)
    if (m.mask == mask) meeting = &m;
  if (meeting == nullptr) {
    meeting = &warp.meetings.emplace_back();
    meeting->mask = mask;
  }
  Meeting& m = *meeting;
  if (m.here == 0) m.what = what;
  if (std::string_view(m.what) != what)
    fail("lanes of warp ", now.thread->index / 32, " of block ", now.block->index, " meet in ", m.what, " and in ", what);
  m.here |= 1u << now.lane();
  m.of[now.lane()] = &mine;
  if (m.here != m.mask) {
    WaitForLanes condition(m);
    return wait(condition);
  }
  T* of[32];
  for (int i = 0; i < 32; ++i) of[i] = static_cast<T*>(m.of[i]);
  m.here = 0;
  ++m.turn;
  act(of);
}

}  // namespace deltagauge::host
