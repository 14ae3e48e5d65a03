// Programs of `rocemu run` that wait for each other, or for the NIC, for ever; or longer than the
// user allows.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "emulator/command/daemons/control_client.h"
#include "emulator/command/told_waits.h"
#include "emulator/os/blocked_threads.h"

namespace rocemu::command {

/// Reads "90", "1.5s", "500ms", "2m" or "1h"; seconds without a unit. Throws UsageError.
std::chrono::nanoseconds parse_time(const std::string& option, const std::string& text);

/// All threads of our descendants but the daemon's, if at one instant none of them ran and nobody
/// but themselves and the NIC can wake any. Nothing if somebody can, or if there is no thread.
/// `counts_polling`: a thread that polls counts as one that waits.
std::optional<std::vector<BlockedThread>> find_hang(pid_t daemon, bool counts_polling,
                                                    const TurnTableView* turns = nullptr);

/// Says that no program outside of the run that this process supervises comes to a socket or a FIFO
/// of its programs: one that waits there for a peer hangs when all others do.
void expect_no_outsiders();

/// A line for each thread, with what it waits for. `nic` is the NIC's answer to
/// {"command":"hang"}, or null if the NIC is gone.
std::string describe_waits(const std::vector<BlockedThread>& threads, const Json& nic);

/// The latest lines of the events that were recorded in `dir`.
std::string recent_events(const std::string& dir);

/// Ends all our descendants but the daemon: by SIGTERM, and those that do not go by SIGKILL.
/// Children of ours are waited for.
void end_programs(pid_t daemon);

}  // namespace rocemu::command
