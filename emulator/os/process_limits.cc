#include "emulator/os/process_limits.h"

namespace rocemu {
namespace {

/// The daemon raises its soft limit of descriptors to the hard limit. It uses about 30 descriptors
/// with two devices, and a dozen more for each program. `rocemu` uses about a dozen and keeps the
/// soft limit.
constexpr rlim_t kMinHardFiles = 64, kMinSoftFiles = 24;
/// The smallest stack with which rocemu starts.
constexpr rlim_t kMinStack = rlim_t{32} << 10;
/// The smallest limit on file sizes with which a program can open a context; 64 KiB is too small.
constexpr rlim_t kMinFileSize = rlim_t{96} << 10;

std::string text_of(rlim_t limit) {
  return limit == RLIM_INFINITY ? "unlimited" : std::to_string(limit);
}

std::string few_files(const rlimit& files) {
  const bool is_hard = files.rlim_max < kMinHardFiles;
  const rlim_t found = is_hard ? files.rlim_max : files.rlim_cur;
  const rlim_t least = is_hard ? kMinHardFiles : kMinSoftFiles;
  return "a process may have " + text_of(found) + " file descriptors" +
         (is_hard ? " at most (the hard limit)" : "") + ", and a NIC needs " + text_of(least) +
         "; raise it: ulimit " + (is_hard ? "-Hn" : "-Sn") + " 1024";
}

}  // namespace

ProcessLimits own_limits() {
  constexpr rlimit kNone{RLIM_INFINITY, RLIM_INFINITY};  // an unreadable limit is sufficient
  ProcessLimits limits{kNone, kNone, kNone};
  getrlimit(RLIMIT_NOFILE, &limits.files);
  getrlimit(RLIMIT_STACK, &limits.stack);
  getrlimit(RLIMIT_FSIZE, &limits.file_size);
  return limits;
}

std::string too_small_stack(const ProcessLimits& limits) {
  const rlim_t stack = limits.stack.rlim_cur;
  if (stack >= kMinStack) return "";
  return "stacks may have " + text_of(stack >> 10) + " KiB, and a NIC needs " +
         text_of(kMinStack >> 10) + "; raise it: ulimit -s 8192";
}

std::string too_small_limit(const ProcessLimits& limits) {
  const rlimit& files = limits.files;
  if (files.rlim_max < kMinHardFiles || files.rlim_cur < kMinSoftFiles) return few_files(files);
  if (std::string stack = too_small_stack(limits); !stack.empty()) return stack;
  if (const rlim_t size = limits.file_size.rlim_cur; size < kMinFileSize)
    return "files may have " + text_of(size >> 10) + " KiB, and a NIC needs " +
           text_of(kMinFileSize >> 10) + "; raise it: ulimit -f unlimited";
  return "";
}

}  // namespace rocemu
