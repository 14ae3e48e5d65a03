// Ctrl-C: what was found so far is reported.
#pragma once

#include <signal.h>

namespace rocemu::explore {

/// While it exists, the first SIGINT or SIGTERM asks for an orderly end, and the second ends us.
/// One at a time.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  /// An end was asked for.
  static bool interrupted();

 private:
  struct sigaction int_before_ {
  }, term_before_{};
};

}  // namespace rocemu::explore
