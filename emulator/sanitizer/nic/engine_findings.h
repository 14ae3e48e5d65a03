// What the engine notices, as findings of the sanitizer's rules: for the NIC while it runs, and for
// `rocemu replay --sanitize`.
#pragma once

#include "emulator/engine/events.h"
#include "emulator/sanitizer/nic.h"

namespace rocemu::sanitizer {

NicFinding finding_of(const engine::Misuse& misuse);
NicFinding finding_of(const engine::CqFailed& failed);

/// Returns the client whose object the fact is about.
engine::ClientId client_of(const engine::Misuse& misuse);

}  // namespace rocemu::sanitizer
