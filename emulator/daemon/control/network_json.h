// The state of a simulated network's ports, for `rocemu show --fabric`.
#pragma once

#include "emulator/daemon/control/state_json.h"
#include "emulator/engine/engine.h"

namespace rocemu::daemon {

/// Returns the ports with their counters, and the time at which they have these values: that of the
/// engine's latest step. Throws ControlServer::Refusal without a simulated network.
Json network_json(const engine::Engine& engine, engine::Instant now);

}  // namespace rocemu::daemon
