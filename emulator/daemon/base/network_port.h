// The event loop's view of a network that carries frames out of the engine and into it: UDP
// (udp_network.h).
#pragma once

#include "emulator/engine/base/time.h"

namespace rocemu::daemon {

class NetworkPort {
 public:
  virtual ~NetworkPort() = default;

  /// Takes what came, as far as it is known where to look. True if there was something.
  virtual bool receive(engine::Instant now) = 0;
  /// Sends what waits, but for what is held back; true if there was something.
  virtual bool flush(engine::Instant now) = 0;
  /// True while an acknowledgement is held back to share a datagram with the application's reply.
  /// The loop must not block then, but should yield so that the application can post that reply.
  virtual bool holds_back() const { return false; }
  /// Returns whether senders must wait until there is room for more frames. The event loop wakes
  /// when there is.
  virtual bool is_congested() const = 0;
};

}  // namespace rocemu::daemon
