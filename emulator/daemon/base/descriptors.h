// Checks how many file descriptors are left. The highest numbers are reserved for descriptors that
// are open only for a moment, above all for those in messages: the system drops a message's
// descriptors if the process has no free number. Permanent descriptors, such as those of
// connections, are therefore refused if they would get a reserved number.
#pragma once

#include <cstddef>

namespace rocemu::daemon {

/// Returns the maximum number of descriptors of this process (RLIMIT_NOFILE).
size_t descriptor_limit();

/// Returns whether the descriptor has one of the reserved numbers, which means that nearly all
/// other numbers are in use.
bool is_reserved(int fd);

/// Returns whether the number of the descriptor is so high that few numbers are left. These are for
/// new clients and for the few descriptors that each client needs. The caller must then refuse
/// requests that would need further descriptors.
bool leaves_few(int fd);

/// Returns whether `error`, an errno value, means that the process or the system has no more
/// descriptors.
bool is_shortage(int error);

/// Logs that a request or connection is refused because few descriptors are left. Only the first
/// call logs this.
void tell_of_shortage();

}  // namespace rocemu::daemon
