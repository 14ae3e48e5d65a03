// librocemu-call-sites.so: writes where the program's calls come from, as emulator/abi/call_sites.h
// has it. It is loaded for `rocemu run --call-sites` only.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <fcntl.h>
#include <unwind.h>

#include "emulator/abi/call_sites.h"
#include "verbs_provider/call_sites/note_call.h"
#include "verbs_provider/turns/kernel.h"

namespace rocemu {
namespace {

using turns::kernel;

/// One that is deeper is told apart by its innermost calls.
constexpr int kMostFrames = 64;
constexpr size_t kLongestLine = 80;

char directory[4096 - 32];

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
  int frames = 0;
};

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* argument) {
  auto& walk = *static_cast<Walk*>(argument);
  const uintptr_t address = _Unwind_GetIP(context);
  Dl_info module{};
  if (address == 0 || ++walk.frames > kMostFrames) return _URC_END_OF_STACK;
  if (dladdr(reinterpret_cast<void*>(address), &module) == 0 || module.dli_fname == nullptr)
    return _URC_NO_REASON;  // code that was made at run time is anywhere
  const char* const slash = strrchr(module.dli_fname, '/');
  const char* const name = slash != nullptr ? slash + 1 : module.dli_fname;
  const uint64_t offset = address - reinterpret_cast<uintptr_t>(module.dli_fbase);
  walk.hash.add(name, strlen(name));
  walk.hash.add(&offset, sizeof(offset));
  return _URC_NO_REASON;
}

void write_lines(const char* line, size_t length, size_t count) {
  char file[sizeof(directory) + 32];
  snprintf(file, sizeof(file), "%s/%ld", directory, kernel(SYS_getpid));
  // Anew each time: a program may close what it did not open.
  const long fd =
      kernel(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return;  // then these calls are taken for alike
  for (size_t i = 0; i < count; ++i) kernel(SYS_write, fd, line, length);
  kernel(SYS_close, fd);
}

__attribute__((constructor)) void find_directory() {
  const char* const variable = getenv(abi::kCallSitesVariable);
  if (variable != nullptr && strlen(variable) < sizeof(directory)) strcpy(directory, variable);
}

}  // namespace
}  // namespace rocemu

extern "C" void rocemu_note_call(const char* name, size_t length, size_t count) {
  using namespace rocemu;
  if (directory[0] == '\0' || count == 0) return;
  Walk walk;
  _Unwind_Backtrace(add_frame, &walk);
  char line[kLongestLine];
  const int size = snprintf(line, sizeof(line), "%.*s %llx\n", static_cast<int>(length), name,
                            static_cast<unsigned long long>(walk.hash.value()));
  if (size > 0 && static_cast<size_t>(size) < sizeof(line))
    write_lines(line, static_cast<size_t>(size), count);
}
