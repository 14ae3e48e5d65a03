// `rocemu run --mount-sysfs`: the NIC's sysfs for programs that do not ask the C library for files,
// such as those in Go and static ones. They get a /sys of their own, in which the NIC's part is.
#pragma once

#include <string>

namespace rocemu::command {

/// Gives this process, which has one thread, and its children a /sys with the tree of the NIC in
/// that directory. Empty, or what was in the way.
std::string mount_sysfs(const std::string& nic_dir);

/// Why this user cannot have one; empty if mount_sysfs() would succeed so far.
std::string obstacle_to_mounts();

}  // namespace rocemu::command
