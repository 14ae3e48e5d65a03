// The command line of rocemud.
#pragma once

#include <spdlog/common.h>

#include <sys/types.h>

#include <optional>
#include <string>

#include "emulator/capture/pcap_writer.h"
#include "emulator/daemon/base/clock.h"
#include "emulator/daemon/net/device_addresses.h"
#include "emulator/daemon/net/udp_attachment.h"
#include "emulator/engine/config.h"
#include "emulator/options/topology.h"
#include "emulator/schedule/priority_order.h"

namespace rocemu::daemon {

struct Options {
  std::string dir;
  engine::FabricConfig fabric;
  std::vector<UdpPlace> udp;  // one for each device; empty: no device is attached to UDP
  AddressSource addresses;    // of devices that are not attached to UDP
  /// If true, frames from UDP are checked with the IP headers that they arrived with.
  bool strict_icrc = false;
  options::Topology topology;
  std::string capture;  // empty for none
  int capture_fd = -1;  // if the file is open already, and `capture` its name
  capture::CaptureLimits capture_limits;
  std::vector<std::string> port_captures;  // files, in the order of the captured ports
  std::string record;                      // a directory; empty for none
  uint64_t record_limit = 0;               // bytes of its journal; 0: no limit
  mode_t umask = 077;                      // of the files for the user
  /// If true, the run ends when it can no longer be recorded.
  bool stop_without_record = false;
  std::vector<std::string> scenarios;  // files
  int scenario_fd = -1;  // if their text was read already, and `scenarios` has their names
  /// kVirtual in lockstep.
  Clock::Kind clock = Clock::Kind::kReal;
  schedule::ScheduleChoice schedule = {};
  /// If true, the daemon never sleeps or yields.
  bool busy_poll = false;
  bool exact_memory = false;
  bool keep_real_devices = false;
  bool sleep_between_turns = false;
  /// If true, the process of the run is notified when nothing can happen any more
  /// (Daemon::tell_stuck).
  bool tell_stuck = false;
  bool tell_exits = false;  // Turns::Options::tells_exits
  std::string sanitizer;    // the directory of abi/sanitizer_log.h; empty for none
  int ready_fd = -1;        // -1 for none
  int lifetime_fd = -1;     // -1 for none
  /// The process of `rocemu run`, whose descendants are the programs; 0 for none. When it dies, the
  /// daemon gets another parent process.
  pid_t run_pid = 0;
  spdlog::level::level_enum log_level = spdlog::level::warn;
};

/// Returns nothing if the command line asked only for a text (--help, --version), which was
/// printed. Throws UsageError.
std::optional<Options> parse_options(int argc, const char* const* argv);

/// Returns the value of --ready-fd even from a command line that is otherwise wrong, so that the
/// error can be reported there; -1 for none.
int find_ready_fd(int argc, const char* const* argv);

}  // namespace rocemu::daemon
