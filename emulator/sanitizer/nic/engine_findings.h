// Converts the engine's observations to findings of sanitizer rules, for a running NIC and for
// `rocemu replay --sanitize`.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "emulator/engine/events.h"
#include "emulator/sanitizer/nic.h"

namespace rocemu::sanitizer {

/// A peer's request that a finding is about
struct PeerRequest {
  engine::QpNumber from, to;
};

struct EngineFinding {
  engine::ClientId client;  // the owner of the object
  NicFinding finding;
  std::optional<PeerRequest> request;  // the request that the finding concerns, if there is one
};

/// Returns the findings in the outputs of a step. The first `before` outputs belong to earlier
/// steps, and are skipped. If a rule of a scenario overran a CQ, that is not a finding.
std::vector<EngineFinding> findings_in(const engine::Outputs& outputs, size_t before = 0);

}  // namespace rocemu::sanitizer
