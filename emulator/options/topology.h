// The place of devices in the machine, as `--topology` describes it: NUMA nodes, PCI switches and
// the devices below them.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "wire/ip_address.h"

namespace rocemu::options {

/// A device of a topology file, on a rail of the network.
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
  /// If true, the machine has no PCI functions, and all devices are virtual, as with rxe.
  bool is_flat = false;
  /// The nodes of a file. Empty: each device is below a separate root port.
  std::vector<NumaNode> nodes;

  std::vector<Rail> rails() const;
};

/// An error in a topology file, with the file and its line.
class TopologyError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Reads "pci", "flat", a file, or the name of an installed topology. Throws TopologyError.
Topology read_topology(const std::string& text);

/// Reads the text of a topology. `name` is the file's name in messages. Throws TopologyError.
Topology parse_topology(const std::string& yaml, const std::string& name);

/// Reads a list of processors in Linux's format, such as "0-7,16". Returns nothing if the text is
/// not one.
std::optional<std::vector<unsigned>> parse_cpu_list(const std::string& text);

}  // namespace rocemu::options
