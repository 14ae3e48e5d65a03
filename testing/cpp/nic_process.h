// Starts a separate NIC for this process: `rocemu run`, with a program that ends when this process
// does.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "testing/cpp/hang_watch.h"

namespace rocemu::testing {

class NicProcess {
 public:
  /// Starts `rocemu run` with these options; it reports hangs to `watch`. Throws Error if the NIC
  /// cannot be started.
  NicProcess(const std::vector<std::string>& options, const HangWatch& watch);
  ~NicProcess();
  NicProcess(const NicProcess&) = delete;
  NicProcess& operator=(const NicProcess&) = delete;

  const std::string& directory() const { return directory_; }
  /// Returns the LD_PRELOAD for programs that must see the NIC.
  const std::string& preload() const { return preload_; }
  /// Returns the directory of findings for these programs (abi/sanitizer_log.h); may be empty.
  const std::string& sanitizer() const { return sanitizer_; }

 private:
  int end();

  pid_t pid_ = -1;
  int lifetime_fd_ = -1;  // the NIC lives as long as this is open
  int messages_fd_ = -1;  // its standard error
  std::string directory_, preload_, sanitizer_;
};

/// Returns the `rocemu` command to use: the value of ROCEMU_COMMAND, or else the command that is
/// installed with the NIC's library.
std::string find_command();

}  // namespace rocemu::testing
