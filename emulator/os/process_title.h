// The name and the command line of this process, as ps(1) and /proc show them.
#pragma once

#include <string>
#include <vector>

namespace rocemu {

/// Changes the name and the command line of this process. The name is the base name of the first
/// argument, as after execve(2). Returns false and changes nothing if the kernel does not support
/// this, because CONFIG_CHECKPOINT_RESTORE is off or a seccomp filter refuses prctl(2).
bool set_process_title(const std::vector<std::string>& arguments);

}  // namespace rocemu
