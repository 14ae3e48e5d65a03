// The interface between the event loop and a network, such as UDP (udp_network.h), which transfers
// frames from and to the engine.
#pragma once

#include "emulator/engine/base/time.h"

namespace rocemu::daemon {

class NetworkPort {
 public:
  virtual ~NetworkPort() = default;

  /// Receives frames from the sockets that are known to be readable. Returns whether there were any
  /// frames.
  virtual bool receive(engine::Instant now) = 0;
  /// Sends the waiting frames, except those that are held back. Returns whether any were sent.
  virtual bool flush(engine::Instant now) = 0;
  /// Returns whether an acknowledgement is held back so that it can share a datagram with the
  /// application's reply. While this is so, the loop must not block, but should yield, so that the
  /// application can post the reply.
  virtual bool holds_back() const { return false; }
  /// Returns whether senders must wait until there is space for more frames. The event loop wakes
  /// when there is space.
  virtual bool is_congested() const = 0;
};

}  // namespace rocemu::daemon
