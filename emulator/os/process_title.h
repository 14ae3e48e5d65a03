// The name and the command line of this process, as ps(1) and /proc show them.
#pragma once

#include <string>
#include <vector>

namespace rocemu {

/// Changes the name and the command line. The name is that of the first argument's file, as after
/// execve(2). Returns false, and changes nothing, if the kernel does not support that: it then
/// lacks CONFIG_CHECKPOINT_RESTORE, or a seccomp filter refuses prctl(2).
bool set_process_title(const std::vector<std::string>& arguments);

}  // namespace rocemu
