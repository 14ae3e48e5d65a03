// Replaces functions of libc, and calls the original ones.
//
// The replacement is defined under another name and has libc's name only as its assembler name:
// libc's headers declare these functions with attributes (nonnull) and redirections (fortify, large
// files) that a definition in C++ would inherit.
#pragma once

#include <atomic>
#include <cerrno>

#include <dlfcn.h>

/// Starts the definition of the replacement of libc's `symbol`.
#define ROCEMU_REPLACE(result, symbol, parameters)         \
  extern "C" __attribute__((visibility("default")))        \
  result rocemu_shim_##symbol parameters __asm__(#symbol); \
  result rocemu_shim_##symbol parameters

/// Declares that `symbol` is the same function as `target`, which is replaced above. On LP64 this
/// is true of large-file functions, such as stat64() and stat().
#define ROCEMU_REPLACE_ALIAS(symbol, target) \
  extern "C" __attribute__((                 \
      visibility("default"),                 \
      alias(#target))) decltype(rocemu_shim_##target) rocemu_shim_##symbol __asm__(#symbol)

namespace rocemu::shim {

/// The function that the program would have called without the shim, found on first use. Two
/// threads may look it up at the same time; they find the same function.
template <class Function>
class Next {
 public:
  constexpr explicit Next(const char* symbol) : symbol_(symbol) {}

  template <class... Args>
  auto operator()(Args... args) {
    return get()(args...);
  }

 private:
  Function* get() {
    Function* known = function_.load(std::memory_order_relaxed);
    return __builtin_expect(known != nullptr, 1) ? known : look_up();
  }

  __attribute__((noinline, cold)) Function* look_up() {
    const int saved = errno;
    auto* found = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, symbol_));
    // If no later library has the function, no program can have been linked to it.
    if (found == nullptr) __builtin_trap();
    errno = saved;
    function_.store(found, std::memory_order_relaxed);
    return found;
  }

  const char* symbol_;
  std::atomic<Function*> function_{nullptr};
};

}  // namespace rocemu::shim
