// Handles Ctrl-C, so that an interrupted exploration reports the findings that it has made until
// then.
#pragma once

#include <signal.h>

namespace rocemu::explore {

/// While an object of this class exists, the first SIGINT, SIGTERM or SIGHUP requests an orderly
/// end, and the second one ends this process. Under nohup(1), SIGHUP has no effect. Only one object
/// can exist at a time.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  /// Returns whether a signal has requested an end.
  static bool interrupted();

 private:
  struct sigaction int_before_ {
  }, term_before_{}, hup_before_{}, pipe_before_{};
};

}  // namespace rocemu::explore
