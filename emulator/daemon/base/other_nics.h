// The commonest mistake with private NICs: two `rocemu run`, each with a NIC of its own, whose
// programs are to meet. Both NICs have the same addresses, so a program finds itself there, or
// nobody. It is told when that is seen and another NIC of the user runs.
#pragma once

#include <sys/types.h>

#include <string>

namespace rocemu::daemon {

/// The directory of this daemon, beside which are those of others. To be called once, at the start.
void set_own_directory(const std::string& dir);

/// Logs, once in the daemon's life and only if another NIC runs, that the program met `what`, and
/// what to do.
void explain_other_nics(pid_t program, const std::string& what);

}  // namespace rocemu::daemon
