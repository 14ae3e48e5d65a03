// `rocemu run` while its command runs: signals, the end of the NIC, programs that hang.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "emulator/command/daemons/daemon_launch.h"
#include "emulator/command/subcommand.h"
#include "emulator/os/stacks.h"

namespace rocemu::command {

/// Of programs that hang or crash.
struct StackFiles {
  StackTool tool{};
  std::string file;    // to which stacks are added
  bool cores = false;  // beside it, "core.PID" of each process
};

struct Supervision {
  /// Null if the NIC is a shared one.
  PrivateDaemon* daemon = nullptr;
  std::string dir;              // of the NIC
  int capture_descriptor = -1;  // the command does not have it
  bool ends_with_daemon = false;
  bool is_virtual = false;
  bool lockstep = false;
  bool mounts_sysfs = false;
  bool tells_exits = false;  // of orphans, which the NIC may look at too late
  std::optional<std::chrono::nanoseconds> timeout = {};
  /// A thread that polls may do so for a time by its own clock, which nobody can see. So long it
  /// may.
  std::chrono::nanoseconds poll_patience = std::chrono::seconds(5);
  /// Where the run is recorded; may be empty.
  std::string recording = {};
  std::optional<StackFiles> stacks = {};
};

struct Outcome {
  int status = 0;      // of the command, kExitHang or kExitTimeout
  std::string report;  // of a run that hung, or whose NIC has gone; empty otherwise
};

/// Runs the command to its end.
Outcome supervise(Arguments& command, const Supervision& supervision);

}  // namespace rocemu::command
