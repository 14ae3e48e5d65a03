#include "verbs_provider/shim/find_runtime_dir.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "emulator/abi/runtime_dir.h"
#include "verbs_provider/shim/text.h"
#include "verbs_provider/system/raw.h"

namespace rocemu::shim {
namespace {

/// The value of ROCEMU_DIR when this library was loaded; empty if there was none
char dir_at_start[sizeof(sockaddr_un::sun_path)];

bool is_directory(const char* path, bool must_be_ours) {
  struct stat status;
  if (raw_syscall(SYS_newfstatat, AT_FDCWD, path, &status, 0) != 0) return false;
  if (!S_ISDIR(status.st_mode)) return false;
  return !must_be_ours || status.st_uid == geteuid();
}

}  // namespace

__attribute__((constructor)) void note_runtime_dir() {
  const char* chosen = secure_getenv(abi::kDirVariable);
  const size_t length = chosen == nullptr ? 0 : strlen(chosen);
  const bool fits = length < sizeof(dir_at_start);
  if (fits && length != 0) memcpy(dir_at_start, chosen, length);
  dir_at_start[fits ? length : 0] = '\0';
}

bool find_runtime_dir(char* out, size_t size) {
  Text text(out, size);
  if (const char* chosen = secure_getenv(abi::kDirVariable); chosen != nullptr && *chosen != '\0') {
    text.add(chosen);
    text.strip_trailing_slashes();
    return text.fits() && is_directory(out, false);
  }
  if (dir_at_start[0] != '\0' && is_directory(dir_at_start, false)) {
    text.add(dir_at_start);
    text.strip_trailing_slashes();
    return text.fits();
  }

  const char* user_dir = secure_getenv("XDG_RUNTIME_DIR");
  if (user_dir != nullptr && *user_dir == '/' && is_directory(user_dir, true)) {
    text.add(user_dir);
    text.strip_trailing_slashes();
    text.add("/");
    text.add(abi::kBaseInRuntimeDir);
  } else {
    text.add(abi::kBaseInTmp);
    text.add_number(geteuid());
  }
  text.add("/");
  text.add(abi::kSharedName);
  // Every user can create a directory in /tmp, so only a directory of our own user is trusted.
  return text.fits() && is_directory(out, true);
}

}  // namespace rocemu::shim
