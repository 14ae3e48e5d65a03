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

/// A private daemon. It ends with the process that owns this object: whatever ends `rocemu`, the
/// daemon notices it, cleans up and exits.
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

  /// Informs this object that another part of rocemu has reaped the daemon, and passes its wait
  /// status.
  void reaped(int wait_status);
  bool is_gone() const { return wait_status_.has_value(); }

  /// Stops the daemon and waits until its process is completely gone. Returns a text that says what
  /// was wrong with its exit; an empty text if it exited normally or was already gone.
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

/// An open descriptor of BASE, by which a process can detect that BASE was removed meanwhile. The
/// last daemon to end removes BASE, perhaps just before a new daemon creates its directory in it.
class OpenBase {
 public:
  /// Opens BASE, and creates it if necessary.
  explicit OpenBase(const std::string& base);
  bool was_removed() const;
  /// Returns whether a daemon failed to start in `dir` only because BASE was removed, so that the
  /// caller must try again. `why` is the daemon's error, and `attempt` the number of earlier
  /// attempts.
  bool made_fail(const std::string& dir, const std::string& why, int attempt) const;
  /// Takes a lock, which is held until this object is destroyed. Another `rocemu up` or `rocemu
  /// down` waits for it.
  void lock();

 private:
  UniqueFd directory_;
};

}  // namespace rocemu::command
