// The errors of subcommands: a line for the user and an exit status.
#pragma once

#include <stdexcept>
#include <string>

namespace rocemu::command {

inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitHang = 123;     // from `rocemu run`: its programs are in a deadlock
inline constexpr int kExitTimeout = 124;  // the same as timeout(1)'s
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;
inline constexpr int kExitSignalBase = 128;  // the signal's number is added to it

/// An error of a subcommand. Its text says what is wrong and how to correct it; main() prints the
/// text after "rocemu: ".
class Error : public std::runtime_error {
 public:
  Error(int exit_status, const std::string& line)
      : std::runtime_error(line), exit_status_(exit_status) {}
  int exit_status() const { return exit_status_; }

 private:
  int exit_status_;
};

/// The command line was wrong.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& line) : Error(kExitUsage, line) {}
};

/// The command line was correct, but the command failed.
class Failure : public Error {
 public:
  explicit Failure(const std::string& line) : Error(kExitFailure, line) {}
};

/// Throws Failure with `what` and the text of errno.
[[noreturn]] void fail_with_errno(const std::string& what, int error);

}  // namespace rocemu::command
