#include "kernels/host/fiber.h"

#include <cstdint>

namespace deltagauge::host {

#ifdef __x86_64__

// Saves what a call must leave as it is, changes stacks, restores.
asm(R"(
.text
.p2align 4
deltagauge_host_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq (%rsi), %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
extern "C" void deltagauge_host_switch(void** from, void** to);

void prepare(Context& context, char* stack, std::size_t bytes, void (*entry)()) {
  auto* top = reinterpret_cast<void**>((reinterpret_cast<std::uintptr_t>(stack) + bytes) & ~std::uintptr_t{15});
  *--top = nullptr;  // where entry would return to; also aligns the stack as after a call
  *--top = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  context.stack = top;
}

void switch_context(Context& from, Context& to) { deltagauge_host_switch(&from.stack, &to.stack); }

#else

void prepare(Context& context, char* stack, std::size_t bytes, void (*entry)()) {
  getcontext(&context.context);
  context.context.uc_stack.ss_sp = stack;
  context.context.uc_stack.ss_size = bytes;
  context.context.uc_link = nullptr;
  makecontext(&context.context, entry, 0);
}

void switch_context(Context& from, Context& to) { swapcontext(&from.context, &to.context); }

#endif

}  // namespace deltagauge::host
