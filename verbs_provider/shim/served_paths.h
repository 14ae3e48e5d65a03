// The file names that a daemon serves: PATH is served as DIR/PATH. The machine's own RDMA devices
// are hidden, because CI runners have some that do not work.
#pragma once

#include <cerrno>
#include <cstddef>

#include "verbs_provider/system/user_memory.h"

namespace rocemu::shim {

/// The longest name of a served file that is mapped; names in sysfs are short.
inline constexpr size_t kMaxPath = 1024;

/// Returns the name without the slash ("sys/class/infiniband_verbs/uverbs0/dev") if `path`, with or
/// without its leading slash, names a file that a daemon serves, else null. Every call that takes a
/// path makes this check, in every program, so it reads only a few bytes.
const char* served_name(const char* path);

/// Returns whether map_path() might map the path: it is a served name, or relative to a directory
/// where it might be one.
bool may_be_served(const char* path);

/// Stores the place below a daemon's directory for `path`, which is relative to `dirfd` as in
/// openat(2). Returns false, without storing anything, if no daemon serves the path.
bool map_path(int dirfd, const char* path, char (&out)[kMaxPath]);

/// Returns the position in `path` at which the served name begins (at its slash), if `path` is
/// below `dir` and served; else null.
const char* unmapped_name(const char* dir, const char* path);

/// Calls `call` with the name to use instead of `path`. `path` must be in readable memory.
template <class Call>
__attribute__((noinline)) auto with_mapped_path(int dirfd, const char* path, Call call) {
  char mapped[kMaxPath];
  return map_path(dirfd, path, mapped) ? call(static_cast<const char*>(mapped)) : call(path);
}

/// Does the same as with_mapped_path(), also if `path` may be in unreadable memory, for a call that
/// only queries and is thus harmless with the wrong name. The original call is made first: if it
/// does not fail with EFAULT, the path can be read here. Programs that query other files have no
/// additional cost.
template <class Call>
inline auto query_path(int dirfd, const char* path, Call call) {
  const int saved = errno;
  const auto result = call(path);
  if ((result < 0 && errno == EFAULT) || !may_be_served(path)) return result;
  errno = saved;
  return with_mapped_path(dirfd, path, call);
}

/// Does the same as with_mapped_path(), also if `path` may be in unreadable memory, for a call that
/// has an effect.
template <class Call>
inline auto use_path(int dirfd, const char* path, Call call) {
  if (!is_readable_path(path) || !may_be_served(path)) return call(path);
  return with_mapped_path(dirfd, path, call);
}

}  // namespace rocemu::shim
