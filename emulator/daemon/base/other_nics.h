// Detects the most common mistake with private NICs: two `rocemu run` have separate NICs although
// their programs should communicate. Both NICs have the same addresses and QP numbers, so each
// program connects its QP to itself.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace rocemu::daemon {

/// Sets the directory of this daemon. The directories of other daemons have the same parent. Must
/// be called once, at the start.
void set_own_directory(const std::string& dir);

/// If the NIC of another `rocemu run` has a QP with this number, logs that the program's QP is
/// connected to itself, and what to do. Logs only once in the daemon's lifetime. A thread queries
/// the other NIC, because that NIC may query this one at the same time.
void explain_meeting_itself(pid_t program, uint32_t qpn);

}  // namespace rocemu::daemon
