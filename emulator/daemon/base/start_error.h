// Exceptions with the reason why the daemon cannot start, as one line for the user. They are thrown
// before the daemon serves clients.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>

namespace rocemu::daemon {

/// The daemon cannot start, and exits with status 1.
class StartError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The command line is wrong, and the daemon exits with status 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] inline void fail_start(const std::string& what, int error) {
  throw StartError(what + ": " + std::strerror(error));
}

}  // namespace rocemu::daemon
