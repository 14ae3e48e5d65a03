// What sysfs has of a NIC, of the keys that a profile has: `ibv_devinfo -v` prints neither the
// driver nor the PCI function.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rocemu::profile {

/// A value of a profile, written as YAML has it.
struct FoundValue {
  std::string section, key, value;
  std::string source;  // the file or link, below the device's directory
};

/// Reads the directory of one device, such as /sys/class/infiniband/mlx5_0. What it does not have
/// and every NIC has is left out; a file that some drivers lack is `null` then.
std::vector<FoundValue> read_sysfs(const std::filesystem::path& device);

}  // namespace rocemu::profile
