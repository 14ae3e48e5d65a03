// Reads the values of a profile that sysfs has for a NIC, because `ibv_devinfo -v` prints neither
// the driver nor the PCI function.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rocemu::profile {

/// A value of a profile, as written in YAML
struct FoundValue {
  std::string section, key, value;
  std::string source;  // the file or link, below the device's directory
};

/// Reads the directory of one device, such as /sys/class/infiniband/mlx5_0. A value that every NIC
/// has is omitted if it is missing; a file that some drivers lack is then `null`.
std::vector<FoundValue> read_sysfs(const std::filesystem::path& device);

}  // namespace rocemu::profile
