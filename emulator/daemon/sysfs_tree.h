// What stands in sysfs for a device: the files that libibverbs, librdmacm, libibumad and tools
// read, found by deleting one at a time and seeing what breaks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/abi/control.h"
#include "emulator/engine/config.h"

namespace rocemu::daemon {

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

}  // namespace rocemu::daemon
