// The state of fabric and clients as `rocemu show --json` prints it. Its names are for users to
// rely on: {"clients":[...],"fabric":{"devices":[...]}}.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "emulator/daemon/client/client_session.h"
#include "emulator/engine/snapshot.h"

namespace rocemu::daemon {

/// Keeps the order in which things are named.
using Json = nlohmann::ordered_json;

Json state_json(const engine::FabricSnapshot& fabric,
                const std::vector<const ClientSession*>& sessions);

}  // namespace rocemu::daemon
