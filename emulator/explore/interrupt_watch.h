// Handles Ctrl-C, so that the findings until then are reported.
#pragma once

#include <signal.h>

namespace rocemu::explore {

/// While an object of this class exists, the first SIGINT, SIGTERM or SIGHUP requests an orderly
/// end, and the second one ends this process. Under nohup(1), SIGHUP does neither. Only one object
/// can exist at a time.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  /// Returns whether an end was requested.
  static bool interrupted();

 private:
  struct sigaction int_before_ {
  }, term_before_{}, hup_before_{}, pipe_before_{};
};

}  // namespace rocemu::explore
