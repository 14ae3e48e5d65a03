// Reads values of a profile from a NIC's directory in sysfs, because `ibv_devinfo -v` prints
// neither the driver nor the PCI function.
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

/// Reads the directory of one device, such as /sys/class/infiniband/mlx5_0. A missing file is
/// omitted in the result or, if some drivers do not create it, has the value `null`.
std::vector<FoundValue> read_sysfs(const std::filesystem::path& device);

}  // namespace rocemu::profile
