// What stands in sysfs for a device: the files that libibverbs, librdmacm, libibumad and tools
// read, found by deleting one at a time and seeing what breaks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/abi/control.h"
#include "emulator/engine/config.h"

namespace rocemu::daemon {

/// The network interface that every port names as its own.
inline constexpr char kNetdev[] = "lo";

struct SysfsDevice {
  std::string name;
  std::vector<wire::IpAddress> addresses;
  abi::DeviceAttr attr;  // as ibv_query_device(3) says
  abi::PortAttr port;
};

struct SysfsFile {
  std::string path;  // below the sysfs root
  std::string content;
};

/// In no particular order; directories are those that the paths name.
std::vector<SysfsFile> sysfs_files(const std::vector<SysfsDevice>& devices);

/// The directories in which these are, of one device.
std::vector<std::string> sysfs_directories(const std::string& device, size_t index);

/// Of these, what changes when the port goes down or up.
std::vector<SysfsFile> port_state_files(const std::string& device, const abi::PortAttr& port);

}  // namespace rocemu::daemon
