// `rocemu run --mount-sysfs`: shows the NIC's sysfs to programs that do not open files through the
// C library, such as Go programs and static ones. They get a separate /sys that includes the NIC's
// part.
#pragma once

#include <string>

namespace rocemu::command {

/// Gives this process, which has one thread, and its children a /sys with the tree of the NIC in
/// that directory. Empty, or what was in the way.
std::string mount_sysfs(const std::string& nic_dir);

/// Why this user cannot have one; empty if mount_sysfs() would succeed so far.
std::string obstacle_to_mounts();

}  // namespace rocemu::command
