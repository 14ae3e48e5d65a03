// `rocemu run` while its command runs: signals, the end of the NIC, programs that hang.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "emulator/command/base/subcommand.h"
#include "emulator/command/daemons/daemon_launch.h"
#include "emulator/command/hangs/stack_files.h"
#include "emulator/command/run/run_programs.h"
#include "emulator/command/run/watched_test.h"

namespace rocemu::command {

struct Supervision {
  /// Null if the NIC is a shared one.
  PrivateDaemon* daemon = nullptr;
  std::string dir;              // of the NIC
  int capture_descriptor = -1;  // the command does not have it
  bool ends_with_daemon = false;
  bool lockstep = false;
  bool mounts_sysfs = false;
  bool tells_exits = false;  // also for orphans, which the NIC may notice too late
  std::optional<std::chrono::nanoseconds> timeout = {};
  /// The time for which a thread may poll without success. Its own time limit cannot be seen from
  /// outside.
  std::chrono::nanoseconds poll_patience = std::chrono::seconds(5);
  /// The directory of the run's recording; may be empty.
  std::string recording = {};
  std::optional<StackFiles> stacks = {};
  /// The test that is watched in place of the command; may be null.
  WatchedTest* test = nullptr;
};

struct Outcome {
  int status = 0;      // of the command, kExitHang or kExitTimeout
  std::string report;  // of a run that hung, or whose NIC has gone; empty otherwise
};

/// Declares that no program outside the supervised runs connects to a socket or opens a FIFO of
/// their programs: a program that waits there for a peer hangs when all other programs do.
void expect_no_outsiders();

/// Runs the command to its end.
Outcome supervise(Arguments& command, RunPrograms& programs, const Supervision& supervision);

}  // namespace rocemu::command
