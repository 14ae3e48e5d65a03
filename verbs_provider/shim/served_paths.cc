#include "verbs_provider/shim/served_paths.h"

#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "verbs_provider/shim/raw.h"
#include "verbs_provider/shim/runtime_dir.h"
#include "verbs_provider/shim/text.h"

namespace rocemu::shim {
namespace {

struct Prefix {
  const char* text;
  size_t length;
  bool variants;  // "infiniband_verbs" and "infiniband_mad" as well as "infiniband"
};

template <size_t N>
constexpr Prefix prefix(const char (&text)[N], bool variants) {
  return {text, N - 1, variants};
}

constexpr Prefix kServed[] = {
    prefix("sys/class/infiniband", true),
    prefix("sys/class/misc/rdma_cm", false),
    prefix("dev/infiniband", false),
};

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
    const char next = name[served.length];
    if (next == '\0' || next == '/' || (served.variants && next == '_')) return name;
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
  text.add("/");
  text.add(name);
  return text.fits();
}

const char* unmapped_name(const char* dir, const char* path) {
  const size_t length = strlen(dir);
  if (strncmp(path, dir, length) != 0 || path[length] != '/') return nullptr;
  return served_name(path + length) != nullptr ? path + length : nullptr;
}

}  // namespace rocemu::shim
