// The commonest mistake with private NICs: two `rocemu run`, each with a NIC of its own, whose
// programs should meet. Both NICs have the same addresses and QP numbers, so a program connects its
// QP to itself.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace rocemu::daemon {

/// The directory of this daemon, beside which are those of others. To be called once, at the start.
void set_own_directory(const std::string& dir);

/// Logs, once in the daemon's life and only if the NIC of another `rocemu run` has a QP of that
/// number, that the program's QP is connected to itself, and what to do. A thread asks the other
/// NIC, which may ask us at the same time.
void explain_meeting_itself(pid_t program, uint32_t qpn);

}  // namespace rocemu::daemon
