// Runs the project's CUDA kernels on the CPU: their own files, compiled by the C++ compiler against shadow headers
// (kernels/host/shadow) in which each PTX wrapper is a call from here. What it shows and what it cannot: docs/host.md.
//
// A thread of a block is a fiber, a block a host thread; one of all goes on at a time. Blocks start as multiprocessors have
// room for them, those of a dependent kernel while the one ahead still runs. What is asynchronous on the device, products of
// wgmma and copies, is done as the mode says: at issue, as late as a wait allows, or anywhere between. A missing wait, fence
// or barrier then shows as other bits. Where nobody can go on, the run ends with an Error that says what each warp waits
// for.
//
// A new kernel: name its .cu files in kernels/host/CMakeLists.txt. Every variant of kernels/gdn/variants.cc is a backend
// host.gdn.<variant>. A PTX wrapper that is new needs its shadow; a namespace that declares `extern __shared__ char
// shared[]` a line in shared_memory.cc. Then
//   build/deltagauge validate --host mode=late,sms=8,races=on --case ID --backend host.gdn.<variant>
// judges it against the oracle, prints rel-L2 and the first bad place.
//
// The namespace is not kernels::host, since the kernels' files are compiled a second time under another name of `kernels`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace deltagauge::host {

// When what is asynchronous happens, and in which order warps go on.
enum class Mode : std::uint8_t {
  early,    // at issue; warps in order
  late,     // when it is waited for, copies when nobody can go on without; warps in reverse order
  shuffled  // at any time between, drawn from the seed; so are the turns of warps and blocks
};
struct Options {
  Mode mode = Mode::late;
  int sms = 4;  // multiprocessors; what launch code chooses depends on it
  std::uint64_t seed = 1;
  bool races = false;  // look for them (races.h): some times slower
};
// "mode=early|late|shuffled,sms=N,seed=N,races=on|off", any of them. Throws Error.
Options parse_options(std::string_view text, Options options = {});
std::string_view name(Mode mode);

// Calls enqueue, which launches kernels, and runs all of them. One caller at a time; others wait. Throws Error on a deadlock
// or on what the device would not define.
void execute(const Options& options, const std::function<void()>& enqueue);

// For the launch code inside of execute().
struct Launch {
  std::function<void()> body;  // by every thread
  unsigned blocks = 0, threads = 0;
  std::size_t shared_bytes = 0;
  bool early = false;  // may start once all blocks of the one ahead have said so
};
void launch(Launch launch);
void then(std::function<void()> call);  // in stream order, once all before it has ended
const Options& options();
// Blocks of a kernel that a multiprocessor holds by its threads and shared memory; its registers are not known.
int blocks_of_sm(int threads, std::size_t shared_bytes);

inline constexpr std::size_t kSharedOfBlock = 227 * 1024, kSharedOfSm = 228 * 1024;  // of sm_90
inline constexpr int kThreadsOfSm = 2048, kBlocksOfSm = 32, kThreadsOfBlock = 1024;

}  // namespace deltagauge::host
