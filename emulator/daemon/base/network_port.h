// What carries frames out of an engine and into it, as the loop sees it: UDP (udp_network.h), or
// the other threads of the daemon (shard_link.h).
#pragma once

#include <optional>

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
  /// What would make more frames has to wait until there is room.
  virtual bool is_congested() const = 0;
  /// Before a timer runs out: all that was sent until then has been looked at where it went, and
  /// what was answered has been taken. A peer that got no processor for a while would else look
  /// like frames that were lost. Called again until it is so, with when the timer was to run out.
  [[nodiscard]] virtual bool has_settled(engine::Instant /*now*/, engine::Instant /*deadline*/) {
    return true;
  }
  /// How long to wait for room at most; nothing: the event loop will be told.
  virtual std::optional<engine::Duration> longest_wait() const { return std::nullopt; }

  /// From now on what comes wakes the event loop. False if something has come: then nobody sleeps.
  [[nodiscard]] virtual bool fall_asleep() { return true; }
  virtual void stay_awake() {}
};

}  // namespace rocemu::daemon
