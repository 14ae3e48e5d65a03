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
  /// `options` of `rocemu run`, which reports hangs to `watch`. Throws Error if the NIC cannot be
  /// started.
  NicProcess(const std::vector<std::string>& options, const HangWatch& watch);
  ~NicProcess();
  NicProcess(const NicProcess&) = delete;
  NicProcess& operator=(const NicProcess&) = delete;

  const std::string& directory() const { return directory_; }
  /// For programs that are to see the NIC: LD_PRELOAD.
  const std::string& preload() const { return preload_; }
  /// The directory of findings for these programs (abi/sanitizer_log.h); may be empty.
  const std::string& sanitizer() const { return sanitizer_; }

 private:
  int end();

  pid_t pid_ = -1;
  int lifetime_fd_ = -1;  // the NIC lives as long as this is open
  int messages_fd_ = -1;  // what it says on standard error
  std::string directory_, preload_, sanitizer_;
};

/// The `rocemu` to use.
std::string find_command();

}  // namespace rocemu::testing
