// Starts rocemud, and stops it if it is private.
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
  std::vector<std::string> arguments;  // the arguments on its command line
  int capture_fd = -1;                 // the descriptor for its capture; -1 for none
  std::string scenario = {};           // the text of its first rules; empty for none
};

/// A daemon that lives as long as the process of this object: however `rocemu` dies, the daemon
/// notices it, cleans up and ends.
class PrivateDaemon {
 public:
  /// Starts a daemon in a new directory BASE/run-*. Throws Failure with the daemon's reason.
  static PrivateDaemon start(const DaemonStart& start);
  PrivateDaemon(PrivateDaemon&&) = default;
  PrivateDaemon& operator=(PrivateDaemon&&) = delete;
  /// Stops the daemon, if stop() was not called.
  ~PrivateDaemon();

  const std::string& dir() const { return dir_; }
  pid_t pid() const { return pid_; }

  /// Informs this object that another part of rocemu has reaped the process, which had this wait
  /// status.
  void reaped(int wait_status);
  bool is_gone() const { return wait_status_.has_value(); }

  /// Stops the daemon and waits until it is completely gone. Returns what was wrong with its exit;
  /// nothing if it exited normally or was already gone.
  std::string stop();

 private:
  PrivateDaemon(std::string dir, pid_t pid, RunLifetime lifetime);

  std::string dir_;
  pid_t pid_;
  RunLifetime lifetime_;
  std::optional<int> wait_status_;
  bool stopped_ = false;
};

/// Starts a daemon in `dir` that outlives this process. Its output goes to `log_path`.
void start_background_daemon(const std::string& dir, const DaemonStart& start,
                             const std::string& log_path);

/// An open descriptor of BASE. It shows whether BASE was removed meanwhile: the last daemon to end
/// removes BASE, perhaps just before a new daemon creates its directory there.
class OpenBase {
 public:
  /// Opens BASE, and creates it if necessary.
  explicit OpenBase(const std::string& base);
  bool was_removed() const;
  /// Returns whether a daemon failed to start in `dir` (for the reason `why`) only because BASE was
  /// removed, so that starting can be tried again.
  bool made_fail(const std::string& dir, const std::string& why, int attempt) const;
  /// Excludes other `rocemu up` and `rocemu down` until this object is destroyed.
  void lock();

 private:
  UniqueFd directory_;
};

}  // namespace rocemu::command
