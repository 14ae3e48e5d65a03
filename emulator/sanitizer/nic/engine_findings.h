// What the engine notices, as findings of the sanitizer's rules: for the NIC while it runs, and for
// `rocemu replay --sanitize`.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "emulator/engine/events.h"
#include "emulator/sanitizer/nic.h"

namespace rocemu::sanitizer {

/// A request of a peer.
struct PeerRequest {
  engine::QpNumber from, to;
};

struct EngineFinding {
  engine::ClientId client;  // the owner of the object
  NicFinding finding;
  std::optional<PeerRequest> request;  // that the finding is about, if it is about one
};

/// Returns the findings in what a step put out; the first `before` outputs are of steps before it.
/// A CQ that a rule of a scenario overruns is none.
std::vector<EngineFinding> findings_in(const engine::Outputs& outputs, size_t before = 0);

}  // namespace rocemu::sanitizer
