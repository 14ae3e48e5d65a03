// The commands of the control socket for time:
//   {"command":"clock"}                  reports the kind of clock, the time, and the next deadline
//   {"command":"clock","held":true}      stops virtual time, except for "advance"
//   {"command":"advance","ns":N}         advances virtual time, and handles all due events
// docs/control.md describes them completely.
#pragma once

#include "emulator/daemon/base/clock.h"
#include "emulator/daemon/client/session_table.h"
#include "emulator/daemon/control/control_server.h"
#include "emulator/daemon/run/engine_host.h"

namespace rocemu::daemon {

/// Returns the commands. All arguments must outlive them. While `held` is true, virtual time
/// advances only by the command "advance".
ControlServer::Commands time_commands(EngineHost& host, SessionTable& sessions, Clock& clock,
                                      bool& held);

}  // namespace rocemu::daemon
