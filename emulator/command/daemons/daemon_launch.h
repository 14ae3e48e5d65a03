// Starts rocemud and, for a private one, ends it again.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "emulator/os/run_lifetime.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::command {

/// The arguments and descriptors of a daemon to start.
struct DaemonStart {
  std::vector<std::string> arguments;  // of its command line
  int capture_fd = -1;                 // what it writes its capture to; -1 for none
  std::string scenario = {};           // the text of the rules it begins with; empty for none
};

/// A daemon that lives as long as this object's process: when `rocemu` dies in whatever way, the
/// daemon notices and cleans up.
class PrivateDaemon {
 public:
  /// Starts it in a new directory BASE/run-*. Throws Failure with the daemon's own reason.
  static PrivateDaemon start(const DaemonStart& start);
  PrivateDaemon(PrivateDaemon&&) = default;
  PrivateDaemon& operator=(PrivateDaemon&&) = delete;
  /// Ends it, if stop() was not called.
  ~PrivateDaemon();

  const std::string& dir() const { return dir_; }
  pid_t pid() const { return pid_; }

  /// Informs this object that another part has waited for the process, which ended with this wait
  /// status.
  void reaped(int wait_status);
  bool is_gone() const { return wait_status_.has_value(); }

  /// Ends the daemon and waits until nothing of it is left. Returns what was wrong with its end;
  /// nothing if it ended well or was gone already.
  std::string stop();

 private:
  PrivateDaemon(std::string dir, pid_t pid, RunLifetime lifetime);

  std::string dir_;
  pid_t pid_;
  RunLifetime lifetime_;
  std::optional<int> wait_status_;
  bool stopped_ = false;
};

/// Starts a daemon in `dir` that outlives this process; what it has to say goes to `log_path`.
void start_background_daemon(const std::string& dir, const DaemonStart& start,
                             const std::string& log_path);

/// BASE, opened. An open directory shows whether it was removed meanwhile: the last daemon to end
/// removes BASE, perhaps just before a new daemon creates its directory in it.
class OpenBase {
 public:
  /// Creates BASE if need be.
  explicit OpenBase(const std::string& base);
  bool was_removed() const;
  /// Returns whether a daemon failed to start in `dir` (for the reason `why`) only because BASE was
  /// removed, so that it can be tried again.
  bool made_fail(const std::string& dir, const std::string& why, int attempt) const;
  /// Keeps other `rocemu up` and `rocemu down` out until this object is gone.
  void lock();

 private:
  UniqueFd directory_;
};

}  // namespace rocemu::command
