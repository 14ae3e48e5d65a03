// What stands in sysfs for the devices: the files that libibverbs, librdmacm, libibumad and tools
// read, in the kernel's places. Entries of the classes are links to /sys/devices.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "emulator/abi/control.h"
#include "emulator/daemon/kernel/pci_layout.h"
#include "emulator/daemon/kernel/real_devices.h"
#include "emulator/daemon/kernel/sysfs_files.h"
#include "emulator/daemon/net/network_interface.h"
#include "emulator/engine/base/counters.h"
#include "emulator/engine/config.h"

namespace rocemu::daemon {

struct SysfsDevice {
  std::string name;
  std::vector<wire::IpAddress> addresses;
  abi::DeviceAttr attr;  // as ibv_query_device(3) says
  abi::PortAttr port;
  size_t index = 0;
  std::vector<std::string> netdevs = {};  // of each address
  std::shared_ptr<const engine::DeviceProfile> profile = engine::generic_profile();

  /// The network interface of the port: that of the first address that is not a loopback one.
  std::string netdev() const;
};

class SysfsTree {
 public:
  /// Throws StartError if the topology has too much for PCI.
  SysfsTree(const options::Topology& topology, size_t device_count,
            std::vector<NetworkInterface> interfaces, RealDevices real = {});

  /// The interface of each address.
  std::vector<std::string> netdevs_of(const std::vector<wire::IpAddress>& addresses) const;

  /// Everything, in no particular order; directories are those that the paths name.
  std::vector<SysfsFile> files(const std::vector<SysfsDevice>& devices) const;
  /// Of these the files of one device, as they are to be now.
  std::vector<SysfsFile> files_of(const SysfsDevice& device) const;
  /// Of these, what changes when the port goes down or up.
  std::vector<SysfsFile> port_state_files(const std::string& device, size_t index,
                                          const abi::PortAttr& port) const;
  /// The port's counters, under the names that mlx5 and rxe have for them.
  std::vector<SysfsFile> counter_files(const std::string& device, size_t index,
                                       const engine::Counters& counters) const;

  /// Links and directories that are gone when the device is removed: its PCI function stays.
  std::vector<std::string> places(const std::string& device, size_t index) const;

 private:
  std::string verbs_name(size_t index) const;
  std::string mad_name(size_t index) const;
  /// Where an entry of a class is, which the device has.
  std::string place(size_t index, const char* class_name, const std::string& name) const;
  std::string port_directory(const std::string& device, size_t index) const;
  void add_links(SysfsFiles& files, const SysfsDevice& device) const;
  void add_device(SysfsFiles& files, const SysfsDevice& device) const;
  void add_port(SysfsFiles& files, const SysfsDevice& device) const;
  /// A port that is down and has no address.
  void add_further_port(SysfsFiles& files, const SysfsDevice& device, unsigned number) const;
  void add_port_attributes(SysfsFiles& files, const SysfsDevice& device,
                           const std::string& directory, const abi::PortAttr& port,
                           const std::vector<wire::IpAddress>& gids) const;
  void add_netdev(SysfsFiles& files, const std::string& name, size_t index) const;

  bool is_flat_;
  PciLayout pci_;
  std::vector<NetworkInterface> interfaces_;
  RealDevices real_;  // that programs see, too
  /// A file of this machine that answers EINVAL when it is read; empty if there is none.
  std::string unreadable_;
};

}  // namespace rocemu::daemon
