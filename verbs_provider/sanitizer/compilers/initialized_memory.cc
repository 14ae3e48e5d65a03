#include "verbs_provider/sanitizer/compilers/initialized_memory.h"

#include <cstddef>

#include "verbs_provider/base/valgrind.h"

extern "C" {
[[gnu::weak]] void __msan_unpoison(const volatile void* address, size_t size);
[[gnu::weak]] void __msan_scoped_disable_interceptor_checks();
[[gnu::weak]] void __msan_scoped_enable_interceptor_checks();
}

namespace rocemu::sanitizer {
namespace {

/// Asks valgrind to regard the bytes as defined (valgrind/memcheck.h, VALGRIND_MAKE_MEM_DEFINED).
/// Outside of valgrind the instructions have no effect: the rotations add up to a full turn.
void make_defined_for_valgrind([[maybe_unused]] const void* address,
                               [[maybe_unused]] uint64_t length) {
#if defined(__x86_64__) || defined(__aarch64__)
  constexpr uint64_t kMakeDefined = (uint64_t{'M'} << 24 | uint64_t{'C'} << 16) + 2;
  volatile uint64_t request[6] = {
      kMakeDefined, reinterpret_cast<uint64_t>(address), length, 0, 0, 0};
#if defined(__x86_64__)
  uint64_t result = 0;
  asm volatile(
      "rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
      : "+d"(result)
      : "a"(request)
      : "cc", "memory");
#else
  asm volatile(
      "mov x3, xzr; mov x4, %0; ror x12, x12, #3; ror x12, x12, #13; ror x12, x12, #51; "
      "ror x12, x12, #61; orr x10, x10, x10"
      :
      : "r"(request)
      : "cc", "memory", "x3", "x4");
#endif
#endif
}

}  // namespace

bool has_memory_sanitizer() {
  return __msan_unpoison != nullptr;
}

bool is_initialization_watched() {
  return has_memory_sanitizer() || provider::runs_under_valgrind();
}

void mark_initialized(const void* address, uint64_t length) {
  if (has_memory_sanitizer()) __msan_unpoison(address, length);
  if (provider::runs_under_valgrind()) make_defined_for_valgrind(address, length);
}

UncheckedCall::UncheckedCall() {
  if (__msan_scoped_disable_interceptor_checks != nullptr)
    __msan_scoped_disable_interceptor_checks();
}
UncheckedCall::~UncheckedCall() {
  if (__msan_scoped_enable_interceptor_checks != nullptr) __msan_scoped_enable_interceptor_checks();
}

}  // namespace rocemu::sanitizer
