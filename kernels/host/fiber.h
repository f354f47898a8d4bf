// Fibers: several stacks on one host thread, left and entered at will. One switch is a dozen instructions where the machine
// is an x86-64, and two calls of ucontext elsewhere.
#pragma once
#include <cstddef>

#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace deltagauge::host {

struct Context {
#ifdef __x86_64__
  void* stack = nullptr;
#else
  ucontext_t context;
#endif
};

// What starts with entry() on this stack when it is first switched to. entry never returns.
void prepare(Context& context, char* stack, std::size_t bytes, void (*entry)());
void switch_context(Context& from, Context& to);

}  // namespace deltagauge::host
