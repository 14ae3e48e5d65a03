// Describes what the NIC knows about a run that hangs: the meaning of the programs' sockets, what
// objects wait for, and the latest events. This is the reply to {"command":"hang"}.
#pragma once

#include "emulator/daemon/control/state_json.h"
#include "emulator/daemon/run/worker.h"

namespace rocemu::daemon {

/// Returns {"waits":[{"inode" or "peer":N,"what":TEXT} ...],"objects":[TEXT ...],
/// "completions":[TEXT ...],"frames":[TEXT ...],"rules":[TEXT ...],"now_ns":N}.
Json hang_report(Worker& worker, engine::Instant now);

}  // namespace rocemu::daemon
