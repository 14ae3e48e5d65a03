// `rocemu run --mount-sysfs`: shows the NIC's sysfs to programs that do not open files through the
// C library, such as Go programs and static programs. They get a separate /sys that includes the
// NIC's part.
#pragma once

#include <string>

namespace rocemu::command {

/// Gives this process, which must have one thread, and its children a /sys that includes the NIC's
/// tree. Returns an empty string, or the reason for a failure.
std::string mount_sysfs(const std::string& nic_dir);

/// Returns the reason why this user cannot mount a separate /sys; empty if no obstacle is known.
std::string obstacle_to_mounts();

}  // namespace rocemu::command
