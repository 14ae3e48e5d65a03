// The command line of rocemud
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
  std::vector<UdpBinding> udp;  // one for each device; empty: no device is attached to UDP
  AddressSource addresses;      // of devices that are not attached to UDP
  /// If true, the ICRC of each frame from UDP is checked with the IP header with which the frame
  /// arrived.
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
  /// The daemon's clock, which is kVirtual in lockstep.
  Clock::Kind clock = Clock::Kind::kReal;
  schedule::ScheduleChoice schedule = {};
  /// If true, the daemon never sleeps or yields.
  bool busy_poll = false;
  bool exact_memory = false;
  bool keep_real_devices = false;
  bool sleep_between_turns = false;
  /// If true, the daemon notifies the process of `rocemu run` when nothing can happen any more
  /// (Daemon::tell_stuck).
  bool tell_stuck = false;
  bool tell_exits = false;  // Turns::Options::tells_exits
  std::string sanitizer;    // the directory of abi/sanitizer_log.h; empty for none
  int ready_fd = -1;        // -1 for none
  int lifetime_fd = -1;     // -1 for none
  /// The process of `rocemu run`, from which all programs descend; 0 if there is none. The parent
  /// process of the daemon is not sufficient, since it changes when `rocemu run` dies.
  pid_t run_pid = 0;
  spdlog::level::level_enum log_level = spdlog::level::warn;
};

/// Parses the command line. Returns nothing if it only requests a text (--help or --version), which
/// has been printed. Throws UsageError.
std::optional<Options> parse_options(int argc, const char* const* argv);

/// Returns the value of --ready-fd, even if the rest of the command line is wrong, so that the
/// error can be reported to that descriptor; -1 if there is none.
int find_ready_fd(int argc, const char* const* argv);

}  // namespace rocemu::daemon
