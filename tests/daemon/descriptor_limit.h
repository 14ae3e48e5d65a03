// Brings the process into a state without free file descriptors.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

/// While this object exists, the process can open at most `more` descriptors more.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t more = 0) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const UniqueFd next(open("/dev/null", O_RDONLY | O_CLOEXEC));
    rlimit little = before_;
    little.rlim_cur = static_cast<rlim_t>(next.get()) + more;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &little), 0);
  }
  ~DescriptorLimit() { setrlimit(RLIMIT_NOFILE, &before_); }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace rocemu::daemon
