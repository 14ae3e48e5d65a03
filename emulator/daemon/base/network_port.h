// The interface between a network and the event loop. A network carries frames out of the engine
// and into it, such as UDP (udp_network.h).
#pragma once

#include "emulator/engine/base/time.h"

namespace rocemu::daemon {

class NetworkPort {
 public:
  virtual ~NetworkPort() = default;

  /// Receives frames from the sockets that are known to be readable. Returns whether there were
  /// any.
  virtual bool receive(engine::Instant now) = 0;
  /// Sends waiting frames, except those that are held back. Returns whether there were any.
  virtual bool flush(engine::Instant now) = 0;
  /// Returns whether an acknowledgement is held back to share a datagram with the application's
  /// reply. The loop must not block then, but should yield so that the application can post that
  /// reply.
  virtual bool holds_back() const { return false; }
  /// Returns whether senders must wait until there is space for more frames. The event loop wakes
  /// when there is.
  virtual bool is_congested() const = 0;
};

}  // namespace rocemu::daemon
