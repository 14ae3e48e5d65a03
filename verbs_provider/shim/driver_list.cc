#include "verbs_provider/shim/driver_list.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>

#include "verbs_provider/shim/call.h"
#include "verbs_provider/shim/text.h"

namespace rocemu::shim {
namespace {

/// Finds the directory of this library, as an absolute path even if the library was loaded by a
/// relative name. A link in that path is not resolved: it may exist because the directory has a
/// colon in its name (emulator/abi/runtime_dir.h).
bool find_own_dir(char (&dir)[PATH_MAX]) {
  const auto* here = reinterpret_cast<const void*>(&rocemu_call);
  Dl_info self;
#ifdef __GLIBC__
  void* map;
  return dladdr1(here, &self, &map, RTLD_DL_LINKMAP) != 0 && dlinfo(map, RTLD_DI_ORIGIN, dir) == 0;
#else  // With musl a relative name can only be made absolute until the process changes its
       // directory.
  if (dladdr(here, &self) == 0) return false;
  if (self.dli_fname[0] != '/') {
    if (realpath(self.dli_fname, dir) == nullptr) return false;
  } else {
    Text path(dir, sizeof(dir));
    path.add(self.dli_fname);
    if (!path.fits()) return false;
  }
  char* const name = strrchr(dir, '/');
  if (name != nullptr) *name = '\0';
  return name != nullptr;
#endif
}

/// Stores the provider's name in the form that libibverbs needs: libibverbs appends "-rdmav34.so"
/// with the number of its ABI. The plugins are beside this library.
bool find_provider(char* out, size_t size) {
  char dir[PATH_MAX];
  if (!find_own_dir(dir)) return false;
  Text text(out, size);
  text.add(dir);
  text.add("/librocemu");
  return text.fits();
}

void prepend(const char* variable, const char* provider) {
  const char* present = getenv(variable);
  if (present == nullptr || *present == '\0') {
    setenv(variable, provider, 1);
    return;
  }
  const size_t length = strlen(provider);
  if (strncmp(present, provider, length) == 0 && strchr(":;", present[length]) != nullptr) return;
  const size_t size = length + 1 + strlen(present) + 1;
  auto* list = static_cast<char*>(malloc(size));
  if (list == nullptr) return;
  Text text(list, size);
  text.add(provider);
  text.add(":");
  text.add(present);
  setenv(variable, list, 1);
  free(list);
}

}  // namespace

void announce_provider() {
  const int saved = errno;
  char provider[PATH_MAX];
  if (find_provider(provider, sizeof(provider))) {
    prepend("IBV_DRIVERS", provider);
    if (getenv("RDMAV_DRIVERS") != nullptr) prepend("RDMAV_DRIVERS", provider);
  }
  errno = saved;
}

}  // namespace rocemu::shim
