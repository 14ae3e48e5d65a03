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

/// The provider as libibverbs wants it named: it appends "-rdmav34.so" or whatever its ABI is. The
/// plugins have a directory of their own beside this library.
bool find_provider(char* out, size_t size) {
  Dl_info self;
  void* map;
  char dir[PATH_MAX];  // absolute, also if the library was loaded by a relative name
  if (dladdr1(reinterpret_cast<void*>(&rocemu_call), &self, &map, RTLD_DL_LINKMAP) == 0 ||
      dlinfo(map, RTLD_DI_ORIGIN, dir) != 0) {
    return false;
  }
  Text text(out, size);
  text.add(dir);
  text.add("/rocemu/librocemu");
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
