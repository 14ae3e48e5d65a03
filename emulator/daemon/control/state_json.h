// Describes the state of the fabric and the clients, which `rocemu show --json` prints. Users may
// rely on its names: {"clients":[...],"fabric":{"devices":[...]}}.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "emulator/daemon/client/client_session.h"
#include "emulator/engine/snapshot.h"

namespace rocemu::daemon {

/// A JSON value whose members keep the order in which they were added.
using Json = nlohmann::ordered_json;

Json state_json(const engine::FabricSnapshot& fabric,
                const std::vector<const ClientSession*>& sessions);

}  // namespace rocemu::daemon
