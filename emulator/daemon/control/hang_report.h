// The NIC's information about a run that hangs: the meaning of programs' sockets, what objects wait
// for, and the latest events. It is the reply to {"command":"hang"}.
#pragma once

#include "emulator/daemon/control/state_json.h"
#include "emulator/daemon/run/worker.h"

namespace rocemu::daemon {

/// Returns {"waits":[{"inode" or "peer":N,"what":TEXT} ...],"objects":[TEXT ...],
/// "completions":[TEXT ...],"frames":[TEXT ...],"rules":[TEXT ...],"now_ns":N}.
Json hang_report(Worker& worker, engine::Instant now);

}  // namespace rocemu::daemon
