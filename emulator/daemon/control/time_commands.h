// The commands of the control socket for time:
//   {"command":"clock"}                  the kind of clock, the time, the next deadline
//   {"command":"clock","held":true}      virtual time stops, except for "advance"
//   {"command":"advance","ns":N}         virtual time advances, and all due events happen
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
