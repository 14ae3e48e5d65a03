// The commands of the control socket for fault rules:
//   {"command":"inject","rule":YAML}       adds a rule, which is active when the reply arrives
//   {"command":"inject","scenario":YAML}   adds all rules of a scenario
//   {"command":"rules"}                    lists the rules, and how often each matched and acted
//   {"command":"clear"}, {...,"name":NAME} removes all rules, or one
//   {"command":"pause"}, {"command":"resume"}
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "emulator/daemon/control/control_server.h"
#include "emulator/daemon/run/engine_host.h"

namespace rocemu::daemon {

/// Returns the commands. `host` must outlive them. `network` is null if there is no simulated
/// network.
ControlServer::Commands fault_commands(EngineHost& host,
                                       const std::vector<std::string>& device_names,
                                       const std::shared_ptr<const engine::NetworkPlan>& network);

}  // namespace rocemu::daemon
