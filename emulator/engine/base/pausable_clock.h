// The engine's clock. A pause stops it; afterwards it continues from the time at which it stopped.
#pragma once

#include "emulator/engine/base/time.h"

namespace rocemu::engine {

class PausableClock {
 public:
  bool paused() const { return paused_; }

  Instant inner(Instant outer) const { return paused_ ? stopped_at_ : outer - behind_; }
  Instant outer(Instant inner) const { return paused_ ? inner : inner + behind_; }

  void pause(Instant outer, bool paused) {
    if (paused == paused_) return;
    if (paused) {
      stopped_at_ = outer - behind_;
    } else {
      behind_ = outer - stopped_at_;
    }
    paused_ = paused;
  }
  /// Moves the time forward. May be called only while the clock is paused.
  void move_to(Instant inner) {
    if (inner > stopped_at_) stopped_at_ = inner;
  }

 private:
  bool paused_ = false;
  Instant stopped_at_{};
  Duration behind_{};
};

}  // namespace rocemu::engine
