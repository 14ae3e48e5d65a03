// How many file descriptors are left. The last numbers that one can have are reserved for what is
// open for a moment only, above all for descriptors that come with messages: the system drops those
// that it has no number for. So whatever stays open, as a connection does, is refused such a
// number.
#pragma once

#include <cstddef>

namespace rocemu::daemon {

/// How many this process may have now (RLIMIT_NOFILE).
size_t descriptor_limit();

/// True if that descriptor has one of the reserved numbers, so that nearly all others are taken.
bool is_reserved(int fd);

/// True if there are only few after that one. Those are for new clients, and for what each of them
/// needs at least; clients that have more than that are refused.
bool leaves_few(int fd);

/// True if `error`, an errno value, says that the process or the system has no more descriptors.
bool is_shortage(int error);

/// Logs that something is refused for want of descriptors; the first time only.
void tell_of_shortage();

}  // namespace rocemu::daemon
