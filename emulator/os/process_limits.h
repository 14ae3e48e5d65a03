// The resource limits of getrlimit(2) that can prevent a NIC from working
#pragma once

#include <sys/resource.h>

#include <string>

namespace rocemu {

struct ProcessLimits {
  rlimit files, stack, file_size;  // RLIMIT_NOFILE, RLIMIT_STACK, RLIMIT_FSIZE
};

ProcessLimits own_limits();

/// If the limit for the stack is too small, returns a message with the command that raises it;
/// otherwise an empty string. main() must call this first, because later code crashes with a small
/// stack.
std::string too_small_stack(const ProcessLimits& limits = own_limits());
/// Returns a message with the first limit that is too small for a NIC, and with the command that
/// raises it; an empty string if all limits suffice.
std::string too_small_limit(const ProcessLimits& limits = own_limits());

}  // namespace rocemu
