// Describes the state of the ports of a simulated network, for `rocemu show --fabric`.
#pragma once

#include "emulator/daemon/control/state_json.h"
#include "emulator/engine/engine.h"

namespace rocemu::daemon {

/// Returns the ports with their counters, and the time of the engine's latest step, at which the
/// counters had these values. Throws ControlServer::Refusal if there is no simulated network.
Json network_json(const engine::Engine& engine, engine::Instant now);

}  // namespace rocemu::daemon
