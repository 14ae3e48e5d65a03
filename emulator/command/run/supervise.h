// Supervises the command of `rocemu run`: handles signals, and detects that the NIC has ended or
// that programs hang.
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
  /// The daemon of a private NIC; null if the NIC is shared.
  PrivateDaemon* daemon = nullptr;
  std::string dir;              // the NIC's
  int capture_descriptor = -1;  // the command does not inherit it; -1 for none
  bool ends_with_daemon = false;
  bool lockstep = false;
  bool mounts_sysfs = false;
  bool tells_exits = false;  // also the exits of orphans, which the NIC may miss
  std::optional<std::chrono::nanoseconds> timeout = {};
  /// The time after which a thread that polls without success counts as waiting. rocemu cannot see
  /// whether the thread has a time limit itself.
  std::chrono::nanoseconds poll_patience = std::chrono::seconds(5);
  /// The directory of the run's recording; may be empty.
  std::string recording = {};
  std::optional<StackFiles> stacks = {};
  /// The test that is watched instead of the command; may be null.
  WatchedTest* test = nullptr;
};

struct Outcome {
  int status = 0;      // the command's exit status, kExitHang or kExitTimeout
  std::string report;  // why the run hung or lost its NIC; empty otherwise
};

/// Declares that no program outside the supervised runs connects to sockets, or opens FIFOs, of
/// programs in these runs. A program that waits for a peer at such a socket or FIFO then counts as
/// hanging when all other programs hang, too.
void expect_no_external_programs();

/// Runs the command until it ends, and supervises it.
Outcome supervise(Arguments& command, RunPrograms& programs, const Supervision& supervision);

}  // namespace rocemu::command
