// Which names in the file system a daemon serves, and where: PATH is served as DIR/PATH.
#pragma once

#include <cstddef>

namespace rocemu::shim {

/// Longest name of a served file that is mapped; sysfs names are short.
inline constexpr size_t kMaxPath = 1024;

/// If `path`, with or without its leading slash, names something a daemon serves, the name without
/// the slash ("sys/class/infiniband_verbs/uverbs0/dev"); else null. This is what every open() of
/// every program pays, so it looks at few bytes.
const char* served_name(const char* path);

/// The place below a daemon's directory of what `path`, relative to `dirfd` as openat(2) has it,
/// names. False if no daemon serves it: then nothing is written.
bool map_path(int dirfd, const char* path, char (&out)[kMaxPath]);

/// If `path` is the place of a served name below `dir`, where that name begins in `path` (at its
/// slash); else null.
const char* unmapped_name(const char* dir, const char* path);

/// Calls `call` with the name to use instead of `path`.
template <class Call>
__attribute__((noinline)) auto with_mapped_path(int dirfd, const char* path, Call call) {
  char mapped[kMaxPath];
  return map_path(dirfd, path, mapped) ? call(static_cast<const char*>(mapped)) : call(path);
}

}  // namespace rocemu::shim
