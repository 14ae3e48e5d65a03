// Ctrl-C: what was found so far is reported.
#pragma once

#include <signal.h>

namespace rocemu::explore {

/// While it exists, the first SIGINT, SIGTERM or SIGHUP asks for an orderly end, and the second
/// ends us. Under nohup(1) a SIGHUP does neither. One at a time.
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
  }, term_before_{}, hup_before_{}, pipe_before_{};
};

}  // namespace rocemu::explore
