// The options that describe a fabric, checked. `rocemu run`, `rocemu up` and rocemud have them in
// common; each describes them in its own words in its help.
#pragma once

#include <boost/program_options/variables_map.hpp>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "emulator/engine/config.h"

namespace rocemu::options {

/// What is wrong with a command line, in one line, and what would be right.
class OptionError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct FabricOptions {
  std::vector<engine::DeviceConfig> devices;
  bool udp = false;
  /// With `udp`, one for each device: the network interface all of whose addresses it has; empty
  /// for a device that has the addresses of its DeviceConfig.
  std::vector<std::string> interfaces;
  bool strict_icrc = false;
  std::string capture;  // empty for none
  bool is_virtual = false;
  bool lockstep = false;
  std::string record;  // empty for none
  bool stop_without_record = false;
  std::vector<std::string> scenarios;
  std::optional<uint64_t> seed;
  bool threads = false;
  std::string log_level = "warn";
};

/// Throws OptionError.
FabricOptions check_options(const boost::program_options::variables_map& given);

}  // namespace rocemu::options
