// What the control socket can ask of the fault layer:
//   {"command":"inject","rule":YAML}       one rule is in force when this is answered
//   {"command":"inject","scenario":YAML}   all rules of a scenario are
//   {"command":"rules"}                    the rules, how often each was asked and has acted
//   {"command":"clear"}, {...,"name":NAME} all rules go, or one
//   {"command":"pause"}, {"command":"resume"}
#pragma once

#include <string>
#include <vector>

#include "emulator/daemon/control/control_server.h"
#include "emulator/daemon/run/engine_host.h"

namespace rocemu::daemon {

/// `host` must outlive the commands.
ControlServer::Commands fault_commands(EngineHost& host,
                                       const std::vector<std::string>& device_names);

}  // namespace rocemu::daemon
