// What the NIC knows of a run in which nothing happens any more: which sockets of programs stand
// for what, what objects are waiting for, and what happened last. {"command":"hang"} answers it.
#pragma once

#include "emulator/daemon/control/state_json.h"
#include "emulator/daemon/run/worker.h"

namespace rocemu::daemon {

/// {"waits":[{"inode" or "peer":N,"what":TEXT} ...],"objects":[TEXT ...],"completions":[TEXT ...],
///  "frames":[TEXT ...],"rules":[TEXT ...],"now_ns":N}
Json hang_report(Worker& worker, engine::Instant now);

}  // namespace rocemu::daemon
