// Finds the machine's own RDMA devices, for --keep-real-devices. Programs see them in addition to
// the NIC's devices, through links from the NIC's directory tree to the machine's.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "emulator/daemon/kernel/sysfs_files.h"

namespace rocemu::daemon {

struct RealDevices {
  std::vector<SysfsFile> links;    // of the classes infiniband, infiniband_verbs and so on
  std::vector<std::string> names;  // such as "mlx5_0"
  std::vector<std::string> nodes;  // names in /dev/infiniband, without rdma_cm
  /// The first number N for which the machine has neither uverbsN nor umadN.
  size_t first_free_number = 0;
};

/// Reads ROOT/sys and ROOT/dev. `root` is empty, except in tests.
RealDevices find_real_devices(const std::string& root = "");

}  // namespace rocemu::daemon
