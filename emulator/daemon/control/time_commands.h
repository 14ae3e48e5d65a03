// What a test asks by the control socket of time:
//   {"command":"clock"}                  which clock, what time it is, when something is due
//   {"command":"clock","held":true}      virtual time stands still, but for "advance"
//   {"command":"advance","ns":N}         virtual time moves on, and all that is due happens
// docs/control.md tells it in full.
#pragma once

#include "emulator/daemon/base/clock.h"
#include "emulator/daemon/client/session_table.h"
#include "emulator/daemon/control/control_server.h"
#include "emulator/daemon/run/engine_host.h"

namespace rocemu::daemon {

/// All must outlive the commands. `held`: virtual time does not move by itself.
ControlServer::Commands time_commands(EngineHost& host, SessionTable& sessions, Clock& clock,
                                      bool& held);

}  // namespace rocemu::daemon
