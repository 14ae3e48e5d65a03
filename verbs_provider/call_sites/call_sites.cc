// librocemu-call-sites.so writes the call stacks of the program's calls in the format of
// emulator/abi/call_sites.h. It is loaded for `rocemu run --call-sites` only.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <dlfcn.h>
#include <fcntl.h>
#include <unwind.h>

#include "emulator/abi/call_sites.h"
#include "verbs_provider/hooks/note_call.h"
#include "verbs_provider/system/kernel.h"

namespace rocemu {
namespace {

using turns::kernel;

/// The most frames of a stack that are read: longer stacks are distinguished only by their
/// innermost kMostFrames frames.
constexpr size_t kMostFrames = 64;
constexpr size_t kLongestLine = 96;

/// FNV-1a.
class Hash {
 public:
  void add(const void* data, size_t size) {
    for (size_t i = 0; i < size; ++i) {
      value_ ^= static_cast<const unsigned char*>(data)[i];
      value_ *= 0x100000001b3;
    }
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

struct Walk {
  Hash hash;
  uintptr_t places[kMostFrames];
  size_t frames = 0;
};

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* argument) {
  auto& walk = *static_cast<Walk*>(argument);
  const uintptr_t address = _Unwind_GetIP(context);
  if (address == 0 || walk.frames == kMostFrames) return _URC_END_OF_STACK;
  // A frame that repeats an earlier one is left out, so that calls at different depths of a
  // recursion count as the same call site.
  for (size_t i = 0; i < walk.frames; ++i)
    if (walk.places[i] == address) return _URC_NO_REASON;
  walk.places[walk.frames++] = address;
  Dl_info module{};
  if (dladdr(reinterpret_cast<void*>(address), &module) == 0 || module.dli_fname == nullptr)
    return _URC_NO_REASON;  // code that was generated at run time has no fixed place
  const char* const slash = strrchr(module.dli_fname, '/');
  const char* const name = slash != nullptr ? slash + 1 : module.dli_fname;
  const uint64_t offset = address - reinterpret_cast<uintptr_t>(module.dli_fbase);
  walk.hash.add(name, strlen(name));
  walk.hash.add(&offset, sizeof(offset));
  return _URC_NO_REASON;
}

uint64_t hash_of_stack() {
  Walk walk;
  _Unwind_Backtrace(add_frame, &walk);
  return walk.hash.value();
}

/// Appends a line to a file. Opens the directory and the file again each time, because a program
/// may close descriptors that it did not open. If opening fails, for example in a child that may
/// not write there, all calls of the child count as the same. The stack can be nearly exhausted
/// here, as in a signal handler.
void write_line(const char* directory, std::string_view name, uint64_t stack, size_t count) {
  const long at = kernel(SYS_openat, AT_FDCWD, directory, O_PATH | O_CLOEXEC, 0);
  if (at < 0) return;
  char text[kLongestLine];
  snprintf(text, sizeof(text), "%ld", kernel(SYS_getpid));
  const long fd = kernel(SYS_openat, at, text, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  kernel(SYS_close, at);
  if (fd < 0) return;
  const int size = snprintf(text, sizeof(text), "%.*s %llx %zu\n", static_cast<int>(name.size()),
                            name.data(), static_cast<unsigned long long>(stack), count);
  if (size > 0 && static_cast<size_t>(size) < sizeof(text)) kernel(SYS_write, fd, text, size);
  kernel(SYS_close, fd);
}

std::atomic<bool> is_known = false;  // that the program was executed

}  // namespace
}  // namespace rocemu

extern "C" void rocemu_note_call(const char* name, size_t length, size_t count) {
  using namespace rocemu;
  // The variable is not read in a constructor, since constructors of other libraries can make
  // calls, too, and can run before ours.
  const char* const directory = getenv(abi::kCallSitesVariable);
  if (directory == nullptr) return;
  if (!is_known.exchange(true)) write_line(directory, abi::kExecuted, 0, 0);
  write_line(directory, {name, length}, hash_of_stack(), count);
}
