// The places of devices in the machine: NUMA nodes, PCI switches and the devices below them.
// `--topology` describes them.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "wire/ip_address.h"

namespace rocemu::options {

/// A device of a topology file. It is connected to a rail of the network.
struct Rail {
  std::string device;
  std::vector<wire::IpAddress> addresses;  // empty: those of the default device at its position
  std::string interface;                   // the device has its addresses; empty for none
  std::string profile;                     // its name or file; empty: that of --profile
};

/// The devices below one PCI switch.
struct PciSwitch {
  std::vector<Rail> rails;
};

struct NumaNode {
  int number = 0;
  std::string cpus;  // "0-7,16-23"; empty: those of the machine's node, or a fair share of all
  std::vector<PciSwitch> switches;
};

struct Topology {
  /// If true, the machine has no PCI functions: all devices are virtual, like those of rxe.
  bool is_flat = false;
  /// The NUMA nodes of the file. Empty without a file: each device is then below a separate root
  /// port.
  std::vector<NumaNode> nodes;

  std::vector<Rail> rails() const;
};

/// An error in a topology file. Its text has the file's name and the line.
class TopologyError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Reads the topology "pci", "flat", that of a file, or that of the installed file with this name.
/// Throws TopologyError.
Topology read_topology(const std::string& text);

/// Parses the text of a topology. `name` is the file's name in messages. Throws TopologyError.
Topology parse_topology(const std::string& yaml, const std::string& name);

/// Reads a list of processors in Linux's format, such as "0-7,16". Returns nothing if the text does
/// not have this format.
std::optional<std::vector<unsigned>> parse_cpu_list(const std::string& text);

}  // namespace rocemu::options
