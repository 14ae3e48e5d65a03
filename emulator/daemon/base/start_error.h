// Why the daemon cannot start: one clear line for the user. Thrown before the loop runs, never by
// anything that a client can cause.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>

namespace rocemu::daemon {

/// Exit status 1.
class StartError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Exit status 2: the command line is wrong.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] inline void fail_start(const std::string& what, int error) {
  throw StartError(what + ": " + std::strerror(error));
}

}  // namespace rocemu::daemon
