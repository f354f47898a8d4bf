// Copies: cp.async by threads, and those of the bulk engine with and without a tensor map.
#include <cstring>

#include "core/error.h"
#include "kernels/host/block.h"
#include "kernels/host/device.h"

namespace deltagauge::host {
namespace {

void require(bool right, const char* what) {
  if (!right) fail(what);
}
bool aligned(const void* p, std::size_t bytes) { return reinterpret_cast<std::uintptr_t>(p) % bytes == 0; }

// Starts a load to shared memory whose bytes count towards a barrier.
void start_load(std::uint64_t* word, void* shared, std::uint32_t bytes, std::function<void()> write) {
  shared_pointer(shared_address(shared), bytes);
  Block* block = now.block;
  const auto found = block->mbarriers.find(word);
  if (found == block->mbarriers.end()) fail("a bulk load: expected a barrier that is initialised");
  Mbarrier64* barrier = &found->second;  // stays where it is
  Races* races = block->races.get();
  const unsigned engine = races == nullptr ? 0 : races->engine_of(word);
  const std::uint32_t tick = races == nullptr ? 0 : races->next_tick(engine);
  if (races != nullptr) races->by_engine(now.thread->index, engine, tick, shared, bytes, true, "a bulk load");
  add_copy(std::make_shared<Copy>(
      Copy{.block = block, .kernel = block->kernel, .load = true, .read = {}, .write = [=, write = std::move(write)] {
             write();
             barrier->bytes -= bytes;
             if (races != nullptr) races->give(barrier->join, engine, tick);
             barrier->settle(races);
           }}));
}

// Starts a store: first `bytes` of shared memory are read, later write(them) puts them where they belong.
void start_store(const void* shared, std::size_t bytes, std::function<void(const char*)> write) {
  shared_pointer(shared_address(shared), bytes);
  auto held = std::make_shared<std::vector<char>>(bytes);
  const auto copy = std::make_shared<Copy>(Copy{.block = now.block,
                                                .kernel = now.block->kernel,
                                                .read = [=] { std::memcpy(held->data(), shared, bytes); },
                                                .write = [=, write = std::move(write)] { write(held->data()); }});
  if (Races* races = now.block->races.get()) {
    const unsigned engine = races->engine_of(now.thread);
    copy->tick = races->next_tick(engine);
    races->by_engine(now.thread->index, engine, copy->tick, shared, bytes, false, "a bulk store");
  }
  now.thread->stores.push_back(copy);
  add_copy(copy);
}

// The running thread's stores up to this one have read shared memory.
void take_read(const Copy& store) {
  if (Races* races = now.block->races.get()) races->take(now.thread->index, races->engine_of(now.thread), store.tick);
}

// Block b of row r of a box stands at b ^ (r % 8), by the bits of its address.
std::size_t swizzled(std::size_t offset) { return offset ^ (offset >> 7 & 7) << 4; }

}  // namespace

void cp_async_16(std::uint32_t shared, const void* global, bool valid) {
  require(shared % 16 == 0 && (!valid || aligned(global, 16)), "cp.async: expected addresses that are multiples of 16");
  char* to = shared_pointer(shared, 16);
  if (Races* races = now.block->races.get())
    races->by_copy(now.thread->index, now.thread->committed + 1, to, 16, __builtin_return_address(0));
  const auto copy = [=] { valid ? std::memcpy(to, global, 16) : std::memset(to, 0, 16); };
  if (options().mode == Mode::early || chance(2)) return void(copy());
  now.thread->groups.back().push_back(copy);
}
void cp_async_commit() {
  now.thread->groups.emplace_back();
  ++now.thread->committed;
}
void cp_async_wait(int pending) {
  auto& groups = now.thread->groups;
  while (static_cast<int>(groups.size()) - 1 > pending) {
    for (auto& copy : groups.front()) copy();
    groups.erase(groups.begin());
  }
  const auto left = static_cast<std::uint32_t>(groups.size() - 1);
  if (Races* races = now.block->races.get()) races->copies_done(now.thread->index, now.thread->committed - left);
}

void bulk_load(void* shared, const void* global, std::uint32_t bytes, std::uint64_t* barrier) {
  require(aligned(shared, 16) && aligned(global, 16) && bytes % 16 == 0,
          "a bulk load: expected addresses and bytes that are multiples of 16");
  start_load(barrier, shared, bytes, [=] { std::memcpy(shared, global, bytes); });
}
void bulk_store(void* global, const void* shared, std::uint32_t bytes) {
  require(aligned(shared, 16) && aligned(global, 16) && bytes % 16 == 0,
          "a bulk store: expected addresses and bytes that are multiples of 16");
  start_store(shared, bytes, [=](const char* from) { std::memcpy(global, from, bytes); });
}
void bulk_store_wait_read(int pending) {
  auto& stores = now.thread->stores;
  for (std::size_t i = 0; i + static_cast<std::size_t>(pending) < stores.size(); ++i) {
    stores[i]->do_read();
    take_read(*stores[i]);
  }
}
void bulk_store_wait_done() {
  for (auto& store : now.thread->stores) {
    store->finish();
    take_read(*store);
  }
  now.thread->stores.clear();
}

void tensor_load(void* shared, const Box& box, std::uint64_t* barrier) {
  require(aligned(shared, 1024), "a tensor load: expected a shared address that is a multiple of 1024");
  start_load(barrier, shared, 128 * static_cast<std::uint32_t>(box.rows), [=] {
    for (int row = 0; row < box.rows; ++row)
      for (std::size_t at = 0; at < 128; at += 16) {
        char* to = static_cast<char*>(shared) + swizzled(128 * static_cast<std::size_t>(row) + at);
        row < box.valid ? std::memcpy(to, box.base + static_cast<std::uint64_t>(row) * box.row_bytes + at, 16)
                        : std::memset(to, 0, 16);
      }
  });
}
void tensor_store(const Box& box, const void* shared) {
  require(aligned(shared, 1024), "a tensor store: expected a shared address that is a multiple of 1024");
  const std::size_t bytes = 128 * static_cast<std::size_t>(box.rows);
  start_store(shared, bytes, [=](const char* from) {
    for (int row = 0; row < box.rows && row < box.valid; ++row)
      for (std::size_t at = 0; at < 128; at += 16)
        std::memcpy(box.base + static_cast<std::uint64_t>(row) * box.row_bytes + at,
                    from + swizzled(128 * static_cast<std::size_t>(row) + at), 16);
  });
}

}  // namespace deltagauge::host
