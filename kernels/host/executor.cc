// The device: a stream of kernels, multiprocessors that take their blocks, host threads that run them.
#include "kernels/host/executor.h"

#include <sys/mman.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <semaphore>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "core/error.h"
#include "kernels/host/block.h"

namespace deltagauge::host {
namespace {

// A host thread with the stacks and the shared memory of one block after the other. It and who holds it take turns.
class Slot {
 public:
  Slot() : stacks_(map_stacks()), thread_([this] { work(); }) {}
  ~Slot() {
    stop_ = true;
    go_.release();
    thread_.join();
    munmap(stacks_, kBytes);
  }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  Block block;
  int sm = -1;  // where it is; -1: free
  bool begun = false;

  bool turn() {
    go_.release();
    back_.acquire();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return moved_;
  }

 private:
  static constexpr std::size_t kBytes = kThreadsOfBlock * kStackBytes;
  static char* map_stacks() {
    void* at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) fail("host executor: expected ", kBytes, " bytes of address space for stacks, got none");
    return static_cast<char*>(at);
  }
  void work() {
    while (true) {
      go_.acquire();
      if (stop_) return;
      try {
        if (!begun) block.begin(stacks_), begun = true;
        moved_ = block.turn();
      } catch (...) {
        failure_ = std::current_exception();
      }
      back_.release();
    }
  }

  char* stacks_;
  std::binary_semaphore go_{0}, back_{0};
  bool stop_ = false, moved_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

struct Entry {  // of the stream: a kernel, or a call
  Launch launch;
  std::function<void()> call;
  unsigned started = 0, released = 0, ended = 0;
  bool done = false;
};

struct Sm {
  std::size_t shared = kSharedOfSm;
  int threads = kThreadsOfSm, blocks = kBlocksOfSm;
};
constexpr std::size_t kReserved = 1024;  // shared memory that a block takes beside its own

class Device {
 public:
  std::mutex mutex;
  Options options;
  std::uint64_t random = 0;
  std::vector<Entry> stream;
  std::vector<std::shared_ptr<Copy>> copies;
  std::set<std::string> races;

  void run() {
    sms_.assign(static_cast<std::size_t>(options.sms), Sm{});
    while (!std::all_of(stream.begin(), stream.end(), [](const Entry& e) { return e.done; })) {
      bool moved = start();
      for (const std::size_t i : order()) moved |= turn(*slots_[i]);
      if (options.mode == Mode::early || chance(2)) moved |= end_kernels();
      if (chance(2)) moved |= finish_copy(true) || finish_copy(false);
      if (!moved && !finish_copy(true) && !end_kernels() && !finish_copy(false)) report_deadlock();
    }
    if (races.empty()) return;
    std::string text;
    for (const std::string& race : races) text += "\n  " + race;
    fail("races in shared memory: ", races.size(), text);
  }
  void clear_after_failure() {
    slots_.clear();
    copies.clear();
  }

 private:
  // Calls whose turn has come, and blocks where there is room.
  bool start() {
    bool moved = false, before_done = true;
    for (std::size_t k = 0; k < stream.size(); ++k) {
      Entry& entry = stream[k];
      const bool may = before_done || (entry.launch.early && k > 0 && may_follow(stream[k - 1]));
      before_done = before_done && entry.done;
      if (entry.done || !may) continue;
      if (entry.call) {
        entry.call();
        entry.done = moved = before_done = true;
        continue;
      }
      while (entry.started < entry.launch.blocks && place(k)) moved = true;
    }
    return moved;
  }
  static bool may_follow(const Entry& ahead) { return ahead.done || (!ahead.call && ahead.released == ahead.launch.blocks); }
  bool place(std::size_t k) {
    Entry& entry = stream[k];
    const std::size_t shared = entry.launch.shared_bytes + kReserved;
    const auto threads = static_cast<int>((entry.launch.threads + 31) / 32 * 32);
    int best = -1;
    for (std::size_t i = 0; i < sms_.size(); ++i)
      if (sms_[i].shared >= shared && sms_[i].threads >= threads && sms_[i].blocks > 0 &&
          (best < 0 || sms_[i].threads > sms_[static_cast<std::size_t>(best)].threads))
        best = static_cast<int>(i);
    if (best < 0) return false;
    Sm& sm = sms_[static_cast<std::size_t>(best)];
    sm.shared -= shared, sm.threads -= threads, --sm.blocks;
    Slot* slot = nullptr;
    for (auto& one : slots_)
      if (one->sm < 0) slot = one.get();
    if (slot == nullptr) slot = slots_.emplace_back(std::make_unique<Slot>()).get();
    slot->sm = best;
    slot->begun = false;
    slot->block = Block{};
    slot->block.index = entry.started++;
    slot->block.blocks = entry.launch.blocks;
    slot->block.threads_per_block = entry.launch.threads;
    slot->block.kernel = k;
    slot->block.body = &entry.launch.body;
    return true;
  }
  // Blocks under way, in the order of their turns: those of the last kernel come first, unless shuffled.
  std::vector<std::size_t> order() const {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < slots_.size(); ++i)
      if (slots_[i]->sm >= 0) order.push_back(i);
    if (options.mode == Mode::shuffled)
      for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[draw() % i]);
    else
      std::stable_sort(order.begin(), order.end(),
                       [this](std::size_t a, std::size_t b) { return slots_[a]->block.kernel > slots_[b]->block.kernel; });
    return order;
  }
  // How often its warps go on before others have their turn: once, where a later kernel may run beside it.
  int passes_of(const Block& block) const {
    if (options.mode == Mode::shuffled) return static_cast<int>(1 + draw() % 8);
    const bool beside = block.kernel + 1 < stream.size() && stream[block.kernel + 1].launch.early;
    return beside ? 1 : std::numeric_limits<int>::max();
  }
  bool turn(Slot& slot) {
    Block& block = slot.block;
    block.passes = passes_of(block);
    Entry& entry = stream[block.kernel];
    const bool before = block.released, moved = slot.turn();
    const bool over = block.live == 0;
    if (!before && (block.released || over)) block.released = true, ++entry.released;
    if (!over) return moved;
    for (const auto& copy : copies)
      if (copy->block == &block && !copy->done && (copy->read || copy->load))
        fail("kernel ", block.kernel, " block ", block.index, " has ended before a copy was done with its shared memory");
    if (block.races)
      for (const std::string& race : block.races->found())
        races.insert("kernel " + std::to_string(block.kernel) + ": " + race);
    Sm& sm = sms_[static_cast<std::size_t>(slot.sm)];
    sm.shared += entry.launch.shared_bytes + kReserved;
    sm.threads += static_cast<int>((entry.launch.threads + 31) / 32 * 32), ++sm.blocks;
    slot.sm = -1;
    ++entry.ended;
    return true;
  }
  bool end_kernels() {
    bool moved = false;
    for (std::size_t k = 0; k < stream.size(); ++k) {
      Entry& entry = stream[k];
      if (entry.done || entry.call || entry.ended < entry.launch.blocks) continue;
      for (const auto& copy : copies)
        if (copy->kernel == k) copy->finish();
      entry.done = moved = true;
    }
    std::erase_if(copies, [](const auto& copy) { return copy->done; });
    return moved;
  }
  // One of those under way. Stores come last, so that what reads them too early shows.
  bool finish_copy(bool load) {
    std::erase_if(copies, [](const auto& copy) { return copy->done; });
    const std::size_t first = options.mode == Mode::shuffled && !copies.empty() ? draw() % copies.size() : 0;
    for (std::size_t i = 0; i < copies.size(); ++i) {
      Copy& copy = *copies[(first + i) % copies.size()];
      if (copy.load != load) continue;
      copy.finish();
      return true;
    }
    return false;
  }
  [[noreturn]] void report_deadlock() {
    std::string text;
    for (const auto& slot : slots_)
      if (slot->sm >= 0) text += slot->block.describe();
    fail("deadlock: nobody can go on", text);
  }

  std::vector<Sm> sms_;
  std::vector<std::unique_ptr<Slot>> slots_;
};

Device& device() {
  static Device device;
  return device;
}

}  // namespace

Options parse_options(std::string_view text, Options options) {
  std::istringstream words{std::string(text)};
  for (std::string word; std::getline(words, word, ',');) {
    if (word.empty()) continue;
    const std::size_t at = word.find('=');
    const std::string key = word.substr(0, at), value = at == std::string::npos ? "" : word.substr(at + 1);
    std::size_t used = 0;
    const auto number = [&, most = 1024ull]() -> std::uint64_t {
      try {
        const std::uint64_t x = std::stoull(value, &used);
        if (used == value.size() && x >= 1 && x <= most) return x;
      } catch (const std::exception&) {
      }
      fail("--host: ", key, ": expected a number from 1 to ", most, ", got '", value, "'");
    };
    if (key == "mode" && (value == "early" || value == "late" || value == "shuffled"))
      options.mode = value == "early" ? Mode::early : value == "late" ? Mode::late : Mode::shuffled;
    else if (key == "sms")
      options.sms = static_cast<int>(number());
    else if (key == "races" && (value == "on" || value == "off"))
      options.races = value == "on";
    else if (key == "seed")
      options.seed = number();
    else
      fail("--host: expected mode=turns|early|late|shuffled, sms=N, seed=N or races=on|off between commas, got '", word,
           "'");
  }
  return options;
}
std::string_view name(Mode mode) { return mode == Mode::early ? "early" : mode == Mode::late ? "late" : "shuffled"; }

void execute(const Options& options, const std::function<void()>& enqueue) {
  Device& d = device();
  const std::lock_guard lock(d.mutex);
  d.options = options;
  d.random = options.seed;
  d.stream.clear();
  d.races.clear();
  try {
    enqueue();
    d.run();
  } catch (...) {
    d.clear_after_failure();
    throw;
  }
}

void launch(Launch launch) {
  Entry entry;
  entry.launch = std::move(launch);
  device().stream.push_back(std::move(entry));
}
void then(std::function<void()> call) {
  Entry entry;
  entry.call = std::move(call);
  device().stream.push_back(std::move(entry));
}
const Options& options() { return device().options; }
int blocks_of_sm(int threads, std::size_t shared_bytes) {
  const auto by_shared = static_cast<int>(kSharedOfSm / (shared_bytes + kReserved));
  return std::min({by_shared, kThreadsOfSm / ((threads + 31) / 32 * 32), kBlocksOfSm});
}

std::uint64_t draw() {  // splitmix64
  std::uint64_t x = device().random += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}
bool chance(unsigned one_in) { return options().mode == Mode::shuffled && draw() % one_in == 0; }
void add_copy(std::shared_ptr<Copy> copy) {
  if (options().mode == Mode::early) return copy->finish();
  device().copies.push_back(std::move(copy));
}
bool ended(std::size_t kernel) { return kernel >= device().stream.size() || device().stream[kernel].done; }

}  // namespace deltagauge::host
