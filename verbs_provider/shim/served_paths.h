// Which names in the file system a daemon serves, and where: PATH is served as DIR/PATH. The
// machine's own RDMA devices are hidden: runners of CI have some that do not work.
#pragma once

#include <cerrno>
#include <cstddef>

#include "verbs_provider/system/user_memory.h"

namespace rocemu::shim {

/// Longest name of a served file that is mapped; sysfs names are short.
inline constexpr size_t kMaxPath = 1024;

/// If `path`, with or without its leading slash, names something a daemon serves, the name without
/// the slash ("sys/class/infiniband_verbs/uverbs0/dev"); else null. Every call of every program
/// that takes a path pays for it, so it looks at few bytes.
const char* served_name(const char* path);

/// Whether map_path() may find a place for the path: it is a served name, or relative to a
/// directory in which it may be one.
bool may_be_served(const char* path);

/// The place below a daemon's directory of what `path`, relative to `dirfd` as openat(2) has it,
/// names. False if no daemon serves it: then nothing is written.
bool map_path(int dirfd, const char* path, char (&out)[kMaxPath]);

/// If `path` is the place of a served name below `dir`, where that name begins in `path` (at its
/// slash); else null.
const char* unmapped_name(const char* dir, const char* path);

/// Calls `call` with the name to use instead of `path`, which can be read.
template <class Call>
__attribute__((noinline)) auto with_mapped_path(int dirfd, const char* path, Call call) {
  char mapped[kMaxPath];
  return map_path(dirfd, path, mapped) ? call(static_cast<const char*>(mapped)) : call(path);
}

/// The same for any `path` and a call that only asks: nothing happens if it is made with a name
/// that is not the right one. So the kernel is asked first, and where it reads the path without
/// EFAULT it can be read here; a program that asks for other files pays nothing.
template <class Call>
inline auto query_path(int dirfd, const char* path, Call call) {
  const int saved = errno;
  const auto result = call(path);
  if ((result < 0 && errno == EFAULT) || !may_be_served(path)) return result;
  errno = saved;
  return with_mapped_path(dirfd, path, call);
}

/// The same for any `path` and a call that does something.
template <class Call>
inline auto use_path(int dirfd, const char* path, Call call) {
  if (!is_readable_path(path) || !may_be_served(path)) return call(path);
  return with_mapped_path(dirfd, path, call);
}

}  // namespace rocemu::shim
