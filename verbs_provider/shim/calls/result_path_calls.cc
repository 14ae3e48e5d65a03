// Replaces functions that take and return paths. Paths in the daemon's directory are replaced by
// the names that the caller knows, so that the caller can continue from there and compare them.
#include <climits>
#include <cstring>

#include <fcntl.h>
#include <glob.h>

#include "verbs_provider/shim/find_runtime_dir.h"
#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/shim/served_paths.h"
#include "verbs_provider/shim/text.h"

namespace rocemu::shim {
namespace {

using GlobError = int (*)(const char*, int);

Next<char*(const char*, char*)> next_realpath("realpath");
Next<char*(const char*, char*, size_t)> next_realpath_chk("__realpath_chk");
Next<char*(const char*)> next_canonicalize("canonicalize_file_name");
Next<int(const char*, int, GlobError, glob_t*)> next_glob("glob");

void unmap(const char* dir, char* path) {
  const char* name = unmapped_name(dir, path);
  if (name != nullptr) memmove(path, name, strlen(name) + 1);
}

/// Replaces a resolved path in the daemon's directory by the name that the caller knows. Such a
/// path is below the resolved name of the directory.
char* unmap_resolved(char* path) {
  char dir[kMaxPath], resolved_dir[PATH_MAX];
  if (path != nullptr && find_runtime_dir(dir, sizeof(dir)) &&
      next_realpath(dir, resolved_dir) != nullptr) {
    unmap(resolved_dir, path);
  }
  return path;
}

template <class Call>
inline char* resolve(const char* path, Call call) {
  if (!may_be_served(path)) return call(path);
  return unmap_resolved(with_mapped_path(AT_FDCWD, path, call));
}

/// Appends `path` with the special characters of glob() escaped.
void add_escaped(Text* text, const char* path) {
  for (; *path != '\0'; ++path) {
    if (strchr("*?[\\", *path) != nullptr) text->add("\\");
    text->add(path, 1);
  }
}

__attribute__((noinline)) int glob_served(const char* pattern, int flags, GlobError on_error,
                                          glob_t* found) {
  char dir[kMaxPath], mapped[kMaxPath];
  Text text(mapped, sizeof(mapped));
  if (!find_runtime_dir(dir, sizeof(dir))) return next_glob(pattern, flags, on_error, found);
  if (flags & GLOB_NOESCAPE) {
    text.add(dir);
  } else {
    add_escaped(&text, dir);
  }
  text.add(pattern);
  if (!text.fits()) return GLOB_NOSPACE;
  const int result = next_glob(mapped, flags, on_error, found);
  if (result != 0) return result;
  const size_t first = (flags & GLOB_DOOFFS) != 0 ? found->gl_offs : 0;
  for (size_t i = 0; i < found->gl_pathc; ++i) unmap(dir, found->gl_pathv[first + i]);
  return result;
}

}  // namespace
}  // namespace rocemu::shim

using namespace rocemu::shim;

ROCEMU_REPLACE(char*, realpath, (const char* path, char* out)) {
  return resolve(path, [=](const char* name) { return next_realpath(name, out); });
}

ROCEMU_REPLACE(char*, __realpath_chk, (const char* path, char* out, size_t room)) {
  return resolve(path, [=](const char* name) { return next_realpath_chk(name, out, room); });
}

ROCEMU_REPLACE(char*, canonicalize_file_name, (const char* path)) {
  return resolve(path, [](const char* name) { return next_canonicalize(name); });
}

ROCEMU_REPLACE(int, glob, (const char* pattern, int flags, GlobError on_error, glob_t* found)) {
  if (served_name(pattern) == nullptr || *pattern != '/') {
    return next_glob(pattern, flags, on_error, found);
  }
  return glob_served(pattern, flags, on_error, found);
}
ROCEMU_REPLACE_ALIAS(glob64, glob);
