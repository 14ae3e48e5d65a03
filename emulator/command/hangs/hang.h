// Detects programs of `rocemu run` that wait for each other or for the NIC forever, or for longer
// than the user allows.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emulator/command/daemons/control_client.h"
#include "emulator/os/threads/blocked_threads.h"

namespace rocemu::command {

/// Reads "90", "1.5s", "500ms", "2m" or "1h"; a number without a unit means seconds. Throws
/// UsageError, whose message begins with the subcommand.
std::chrono::nanoseconds parse_time(const std::string& subcommand, const std::string& option,
                                    const std::string& text);

/// Returns a text that parse_time() accepts, for messages: with the unit "s" if it has none.
std::string with_unit(const std::string& time);

/// A function that reads the current states of all threads of a run's programs.
using Look = std::function<std::vector<BlockedThread>()>;

/// Detects a hang. Returns all threads if there was an instant at which none of them ran, and only
/// they and the NIC could wake any of them. Returns nothing if anything else can wake a thread, or
/// if there is no thread. With `counts_polling`, a thread that polls counts as waiting.
std::optional<std::vector<BlockedThread>> find_hang(const Look& look, bool counts_polling);

/// Returns a line for each thread, with what it waits for. `nic` is the NIC's reply to
/// {"command":"hang"}, or null if the NIC is gone.
std::string describe_waits(const std::vector<BlockedThread>& threads, const Json& nic);

/// Returns the last lines of the recording's events in `dir`, as a section of a report.
std::string recent_events(const std::string& dir);

}  // namespace rocemu::command
