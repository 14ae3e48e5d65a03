#include "verbs_provider/shim/find_runtime_dir.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "emulator/abi/runtime_dir.h"
#include "verbs_provider/shim/text.h"
#include "verbs_provider/system/raw.h"

namespace rocemu::shim {
namespace {

bool is_directory(const char* path, bool must_be_ours) {
  struct stat status;
  if (raw_syscall(SYS_newfstatat, AT_FDCWD, path, &status, 0) != 0) return false;
  if (!S_ISDIR(status.st_mode)) return false;
  return !must_be_ours || status.st_uid == geteuid();
}

}  // namespace

bool find_runtime_dir(char* out, size_t size) {
  Text text(out, size);
  if (const char* chosen = secure_getenv(abi::kDirVariable); chosen != nullptr && *chosen != '\0') {
    text.add(chosen);
    text.strip_trailing_slashes();
    return text.fits() && is_directory(out, false);
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
