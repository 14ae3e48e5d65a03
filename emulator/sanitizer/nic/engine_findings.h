// Converts the engine's observations to findings of the sanitizer's rules: for the NIC while it
// runs, and for `rocemu replay --sanitize`.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "emulator/engine/events.h"
#include "emulator/sanitizer/nic.h"

namespace rocemu::sanitizer {

/// A request of a peer
struct PeerRequest {
  engine::QpNumber from, to;
};

struct EngineFinding {
  engine::ClientId client;  // the owner of the object
  NicFinding finding;
  std::optional<PeerRequest> request;  // the request that the finding concerns, if there is one
};

/// Returns the findings in the outputs of a step; the first `before` outputs belong to earlier
/// steps. A CQ that a rule of a scenario overruns is not a finding.
std::vector<EngineFinding> findings_in(const engine::Outputs& outputs, size_t before = 0);

}  // namespace rocemu::sanitizer
