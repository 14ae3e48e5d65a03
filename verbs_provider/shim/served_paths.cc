#include "verbs_provider/shim/served_paths.h"

#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "emulator/abi/hidden_devices.h"
#include "emulator/abi/runtime_dir.h"
#include "verbs_provider/shim/counters.h"
#include "verbs_provider/shim/find_runtime_dir.h"
#include "verbs_provider/shim/text.h"
#include "verbs_provider/system/raw.h"

namespace rocemu::shim {
namespace {

/// The text that may follow a prefix.
enum class Behind : uint8_t {
  kEnd,       // the end, or '/'
  kVariants,  // and "_verbs" or "_mad", as behind "infiniband"
  kAnything,  // as after the number of a PCI domain
  kName,      // '/' and a name, which the daemon may or may not have
};

/// The owner of the names that start with a prefix.
enum class Owner : uint8_t {
  kNic,      // the NIC owns all names; the machine's are hidden
  kEither,   // the NIC if its daemon has the name, else the machine
  kMachine,  // the machine, and the names are hidden
};

struct Prefix {
  const char* text;
  size_t length;
  Behind next;
  Owner owner = Owner::kNic;
};

template <size_t N>
constexpr Prefix prefix(const char (&text)[N], Behind next, Owner owner = Owner::kNic) {
  return {text, N - 1, next, owner};
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
    prefix("sys/bus/pci/devices", Behind::kEnd, Owner::kEither),
    prefix("sys/class/net", Behind::kName, Owner::kEither),
    // libibverbs tries this name for a device whose file it could not open.
    prefix("dev/char/231:", Behind::kAnything, Owner::kMachine),
};
static_assert(abi::kDeviceMajor == 231);

constexpr char kRdma[] = "infiniband";
constexpr size_t kRdmaLength = sizeof(kRdma) - 1;

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

const Prefix* find_prefix(const char* name) {
  for (const Prefix& served : kServed) {
    if (strncmp(name, served.text, served.length) != 0) continue;
    if (fits(served, name + served.length)) return &served;
  }
  return nullptr;
}

/// Returns the end of the first component "infiniband" or "infiniband_..." of a name below sys/, or
/// null if there is none. Every RDMA device has such directories, on any bus.
const char* end_of_rdma_component(const char* name) {
  if (strncmp(name, "sys/", 4) != 0) return nullptr;
  for (const char* found = name + 3; (found = strstr(found, kRdma)) != nullptr; ++found) {
    const char next = found[kRdmaLength];
    if (found[-1] == '/' && (next == '\0' || next == '/' || next == '_'))
      return strchrnul(found, '/');
  }
  return nullptr;
}

/// Skips separators that name no component: "//" and "/./".
const char* skip_separators(const char* text) {
  while (text[0] == '/' || (text[0] == '.' && text[1] == '/')) ++text;
  return text;
}

void add_name(Text* text, const char* name) {
  while (*name != '\0') {
    const char* end = strchrnul(name, '/');
    text->add(name, static_cast<size_t>(end - name));
    name = skip_separators(end);
    if (*end == '/') text->add("/");
  }
}

/// Returns whether the daemon's directory contains the first part of the path: an interface, or the
/// list of PCI functions.
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

/// Makes a path absolute that is relative to a directory; the kernel knows the directory's path.
bool make_absolute(int dirfd, const char* path, char (&out)[kMaxPath]) {
  char link[64];
  Text link_text(link, sizeof(link));
  link_text.add(dirfd == AT_FDCWD ? "/proc/thread-self/cwd" : "/proc/thread-self/fd/");
  if (dirfd != AT_FDCWD) link_text.add_number(static_cast<unsigned long>(dirfd));
  char directory[kMaxPath];
  const long size = raw_syscall(SYS_readlinkat, AT_FDCWD, link, directory, sizeof(directory));
  if (size <= 0 || size == static_cast<long>(sizeof(directory))) return false;
  Text text(out, sizeof(out));
  text.add(directory, static_cast<size_t>(size));
  text.add("/");
  text.add(skip_separators(path));
  return text.fits();
}

/// The file for which a name stands.
enum class Destination : uint8_t { kNic, kMachine, kHidden };

/// Returns the destination for `mapped`, a name below the daemon's directory, whose path is `begin`
/// characters long.
Destination destination_of(const char* mapped, size_t begin) {
  const char* name = mapped + begin + 1;
  const Prefix* served = find_prefix(name);
  if (served != nullptr && served->owner == Owner::kNic) return Destination::kNic;
  const bool is_rdma = end_of_rdma_component(name) != nullptr;
  // The list of PCI functions has links to the machine's own functions.
  const bool leads_to_machine = is_rdma && strncmp(name, "sys/bus/", 8) == 0;
  if (served != nullptr && served->owner == Owner::kEither && !leads_to_machine &&
      has(mapped, begin)) {
    return Destination::kNic;
  }
  return is_rdma || (served != nullptr && served->owner == Owner::kMachine) ? Destination::kHidden
                                                                            : Destination::kMachine;
}

/// Stores the path to which a hidden name is redirected: a directory of RDMA devices appears empty,
/// and its entries do not exist. Returns false with --keep-real-devices, since the daemon then has
/// no empty directory.
bool hide(const char* dir, const char* name, char (&out)[kMaxPath]) {
  Text text(out, sizeof(out));
  text.add(dir);
  text.add("/");
  text.add(abi::kHiddenDir);
  if (!text.fits() || raw_syscall(SYS_faccessat, AT_FDCWD, out, F_OK) != 0) return false;
  const char* end = end_of_rdma_component(name);
  text.add(end != nullptr ? end : strrchr(name, '/'));
  return text.fits();
}

}  // namespace

const char* served_name(const char* path) {
  if (path == nullptr) return nullptr;
  const char* name = path;
  while (*name == '/') ++name;
  if (*name != 's' && *name != 'd') return nullptr;
  if (find_prefix(name) != nullptr || end_of_rdma_component(name) != nullptr) return name;
  if (strncmp(name, "dev/", 4) != 0) return nullptr;
  const char* rest = skip_separators(name + 4);
  return rest != name + 4 && strncmp(rest, kRdma, kRdmaLength) == 0 ? name : nullptr;
}

bool may_be_served(const char* path) {
  if (served_name(path) != nullptr) return true;
  return path != nullptr && *path != '/' && strstr(path, kRdma) != nullptr;
}

bool map_path(int dirfd, const char* path, char (&out)[kMaxPath]) {
  char absolute[kMaxPath];
  const char* name = served_name(path);
  // hwloc opens "/" and continues with relative paths; find(1) does so with any directory.
  if (*path != '/' && (name == nullptr || !is_root_directory(dirfd))) {
    if (strstr(path, kRdma) == nullptr || !make_absolute(dirfd, path, absolute)) return false;
    name = served_name(absolute);
  }
  if (name == nullptr) return false;
  char dir[kMaxPath];
  if (!find_runtime_dir(dir, sizeof(dir))) return false;
  Text text(out, sizeof(out));
  text.add(dir);
  const size_t begin = strlen(dir);
  text.add("/");
  add_name(&text, name);
  if (!text.fits()) return false;
  const char* mapped_name = out + begin + 1;
  switch (destination_of(out, begin)) {
    case Destination::kMachine:
      return false;
    case Destination::kHidden: {
      char hidden[kMaxPath];
      if (!hide(dir, mapped_name, hidden)) return false;
      memcpy(out, hidden, sizeof(out));
      return true;
    }
    case Destination::kNic:
      break;
  }
  if (is_counter(mapped_name)) refresh_counters(dir);
  return true;
}

const char* unmapped_name(const char* dir, const char* path) {
  const size_t length = strlen(dir);
  if (strncmp(path, dir, length) != 0 || path[length] != '/') return nullptr;
  return served_name(path + length) != nullptr ? path + length : nullptr;
}

}  // namespace rocemu::shim
