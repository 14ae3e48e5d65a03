// Checks the options that describe a fabric, which `rocemu run`, `rocemu up`, `rocemu explore` and
// rocemud share (option_table.h).
#pragma once

#include <boost/program_options/variables_map.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emulator/engine/config.h"
#include "emulator/network/file/file_plan.h"
#include "emulator/options/read_number.h"
#include "emulator/options/topology.h"

namespace rocemu::options {

/// The value of --schedule, in parts (schedule::ScheduleChoice).
struct GivenSchedule {
  uint64_t number = 0;
  bool has_stops = false;
  std::vector<std::pair<uint64_t, uint64_t>> stops = {};  // threads and calls
};

/// Returns the names of the classes that --adversarial can select.
std::vector<std::string> adversarial_class_names();

/// A port of the simulated network, and the file for a capture of the frames that leave the port.
struct CapturedPort {
  network::PortId port = 0;
  std::string file;
};

struct FabricOptions {
  std::vector<engine::DeviceConfig> devices;
  /// One entry for each device: the network interface whose addresses the device has, or an empty
  /// name if it has the addresses of its DeviceConfig.
  std::vector<std::string> interfaces;
  Topology topology;
  std::string capture;                               // empty for none
  uint64_t snap_length = 65535;                      // bytes of each frame in a capture
  uint64_t capture_last = 0;                         // frames; 0: all
  std::string record;                                // empty for none
  uint64_t record_limit = 0;                         // bytes; 0: none
  std::shared_ptr<const network::FilePlan> network;  // null for none
  std::vector<std::string> network_warnings;         // about its file
  std::vector<CapturedPort> captured_ports;
  std::vector<std::string> scenarios;
  std::string log_level = "warn";
  std::optional<uint64_t> seed;
  GivenSchedule schedule = {};  // of programs' turns
  uint32_t ack_coalescing = 0;  // engine::FabricConfig::ack_coalescing
  uint32_t adversarial = 0;     // engine::FabricConfig::adversarial
  std::vector<std::pair<uint8_t, uint64_t>> adversarial_choices;  // the same
  bool udp = false;
  /// If true, the first device has its default addresses and, in addition, those addresses of the
  /// machine that no other device has.
  bool first_has_machines_addresses = false;
  bool same_keys = false;
  bool strict_icrc = false;
  bool lockstep = false;
  bool stop_without_record = false;
  bool busy_poll = false;
  bool exact_memory = false;
  bool keep_real_devices = false;
  bool sleep_between_turns = false;
};

/// Checks the options and returns their values. Throws OptionError.
FabricOptions check_options(const boost::program_options::variables_map& given);

}  // namespace rocemu::options
