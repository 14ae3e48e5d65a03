// The number of file descriptors that are left. The last numbers are reserved for descriptors that
// are open only for a moment, above all for those in messages: the system drops descriptors for
// which the process has no number left. Permanent descriptors, such as those of connections, are
// therefore refused if they would get a reserved number.
#pragma once

#include <cstddef>

namespace rocemu::daemon {

/// Returns the number of descriptors that this process may have now (RLIMIT_NOFILE).
size_t descriptor_limit();

/// Returns whether the descriptor has one of the reserved numbers, so that nearly all others are
/// taken.
bool is_reserved(int fd);

/// Returns whether only a few numbers are left after that one. These are for new clients and for
/// the minimum that each client needs; clients that have more are refused.
bool leaves_few(int fd);

/// Returns whether `error`, an errno value, means that the process or the system has no more
/// descriptors.
bool is_shortage(int error);

/// Logs, the first time only, that something is refused because there are no more descriptors.
void tell_of_shortage();

}  // namespace rocemu::daemon
