// The resource limits of getrlimit(2) that can prevent a NIC from working
#pragma once

#include <sys/resource.h>

#include <string>

namespace rocemu {

struct ProcessLimits {
  rlimit files, stack, file_size;  // RLIMIT_NOFILE, RLIMIT_STACK, RLIMIT_FSIZE
};

ProcessLimits own_limits();

/// Returns a message if the stack is too small, with the command that raises the limit; otherwise
/// an empty string. main() must call it first: later code crashes with a small stack.
std::string too_small_stack(const ProcessLimits& limits = own_limits());
/// Returns which limit is too small for a NIC, and the command that raises it; empty if all
/// suffice.
std::string too_small_limit(const ProcessLimits& limits = own_limits());

}  // namespace rocemu
