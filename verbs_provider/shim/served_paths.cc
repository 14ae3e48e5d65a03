#include "verbs_provider/shim/served_paths.h"

#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "emulator/abi/runtime_dir.h"
#include "verbs_provider/shim/counters.h"
#include "verbs_provider/shim/find_runtime_dir.h"
#include "verbs_provider/shim/text.h"
#include "verbs_provider/system/raw.h"

namespace rocemu::shim {
namespace {

/// What may follow a prefix.
enum class Behind : uint8_t {
  kEnd,       // the end, or '/'
  kVariants,  // and "_verbs" or "_mad", as behind "infiniband"
  kAnything,  // as behind the number of a PCI domain
  kName,      // '/' and a name, which the daemon may have or not
};

struct Prefix {
  const char* text;
  size_t length;
  Behind next;
};

template <size_t N>
constexpr Prefix prefix(const char (&text)[N], Behind next) {
  return {text, N - 1, next};
}

#define ROCEMU_PCI_DOMAIN "ace0:"
static_assert(sizeof ROCEMU_PCI_DOMAIN == sizeof abi::kPciDomain + 1);

constexpr Prefix kServed[] = {
    prefix("sys/class/infiniband", Behind::kVariants),
    prefix("sys/class/misc/rdma_cm", Behind::kEnd),
    prefix("dev/infiniband", Behind::kEnd),
    prefix("sys/devices/pci" ROCEMU_PCI_DOMAIN, Behind::kAnything),
    prefix("sys/devices/virtual/infiniband", Behind::kVariants),
    prefix("sys/bus/pci/devices/" ROCEMU_PCI_DOMAIN, Behind::kAnything),
    prefix("sys/class/pci_bus/" ROCEMU_PCI_DOMAIN, Behind::kAnything),
    prefix("sys/bus/pci/devices", Behind::kEnd),
    prefix("sys/class/net", Behind::kName),
};

bool fits(const Prefix& served, const char* rest) {
  switch (served.next) {
    case Behind::kEnd:
      return *rest == '\0' || *rest == '/';
    case Behind::kVariants:
      return *rest == '\0' || *rest == '/' || *rest == '_';
    case Behind::kAnything:
      return true;
    case Behind::kName:
      return *rest == '/' && rest[1] != '\0' && rest[1] != '.';
  }
  return false;
}

/// Names that only some daemons serve.
bool may_be_the_machines(const char* name) {
  return strncmp(name, "sys/bus/", 8) == 0 || strncmp(name, "sys/class/net/", 14) == 0;
}

/// Whether the daemon has what the path below its directory begins with: an interface, or the list
/// of PCI functions.
bool has(const char* mapped, size_t begin) {
  const char* end = strstr(mapped + begin, "/net/");
  if (end != nullptr) end = strchrnul(end + 5, '/');
  char entry[kMaxPath];
  Text text(entry, sizeof(entry));
  if (end != nullptr) {
    text.add(mapped, static_cast<size_t>(end - mapped));
  } else {
    text.add(mapped);
  }
  return text.fits() && raw_syscall(SYS_faccessat, AT_FDCWD, entry, F_OK) == 0;
}

bool is_root_directory(int dirfd) {
  struct stat here, root;
  return raw_syscall(SYS_newfstatat, dirfd, ".", &here, 0) == 0 &&
         raw_syscall(SYS_newfstatat, AT_FDCWD, "/", &root, 0) == 0 && here.st_dev == root.st_dev &&
         here.st_ino == root.st_ino;
}

}  // namespace

const char* served_name(const char* path) {
  if (path == nullptr) return nullptr;
  const char* name = path;
  while (*name == '/') ++name;
  if (*name != 's' && *name != 'd') return nullptr;
  for (const Prefix& served : kServed) {
    if (strncmp(name, served.text, served.length) != 0) continue;
    if (fits(served, name + served.length)) return name;
  }
  return nullptr;
}

bool map_path(int dirfd, const char* path, char (&out)[kMaxPath]) {
  const char* name = served_name(path);
  if (name == nullptr) return false;
  // hwloc opens "/" and goes on from there.
  if (*path != '/' && !is_root_directory(dirfd)) return false;
  char dir[kMaxPath];
  if (!find_runtime_dir(dir, sizeof(dir))) return false;
  Text text(out, sizeof(out));
  text.add(dir);
  const size_t begin = strlen(dir);
  text.add("/");
  text.add(name);
  if (!text.fits() || (may_be_the_machines(name) && !has(out, begin))) return false;
  if (is_counter(name)) refresh_counters(dir);
  return true;
}

const char* unmapped_name(const char* dir, const char* path) {
  const size_t length = strlen(dir);
  if (strncmp(path, dir, length) != 0 || path[length] != '/') return nullptr;
  return served_name(path + length) != nullptr ? path + length : nullptr;
}

}  // namespace rocemu::shim
