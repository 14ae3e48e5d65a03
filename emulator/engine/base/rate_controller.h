// The interface of congestion control at the sender, pure like the engine. A scheme takes the
// events of its flow and returns the rate at which it may send. Bytes are those on the wire.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "emulator/engine/base/time.h"

namespace rocemu::engine {

class RateController {
 public:
  virtual ~RateController() = default;

  /// Lets timers that are due by `now` expire, in their order. A late call has the same result as
  /// calls in time, so that a flow that sends nothing needs none.
  virtual void advance(Instant now) = 0;
  /// The flow has sent `bytes`.
  virtual void on_sent(uint32_t bytes, Instant now) = 0;
  /// A CNP for the flow arrived.
  virtual void on_cnp(Instant now) = 0;
  /// `bytes` were acknowledged, the last of them `round_trip` after they were sent.
  virtual void on_acknowledged(uint32_t bytes, Duration round_trip, Instant now) = 0;

  /// The rate as of the last call of any function above.
  virtual uint64_t rate_bps() const = 0;
  /// When advance() changes the rate next; nothing if no timer does.
  virtual std::optional<Instant> next_deadline() const = 0;
};

/// The notification point's side: whether a CNP goes out for a flow. The first mark is reported at
/// once; then one CNP goes out for each interval in which a frame was marked, when it is over (Zhu
/// et al., SIGCOMM 2015, section 3.1 and figure 6). There is no timer: a frame that arrives after
/// the interval's end, marked or not, sends its CNP.
class CnpLimiter {
 public:
  /// Returns whether a CNP goes out now that a frame of the flow has arrived.
  bool should_send(bool is_marked, Instant now, Duration interval) {
    was_marked_ = was_marked_ || is_marked;
    if (!was_marked_ || (has_sent_ && now - last_ < interval)) return false;
    was_marked_ = false;
    has_sent_ = true;
    last_ = now;
    return true;
  }
  /// The same for a frame that arrived with CE, for callers that ask about no others.
  bool should_send(Instant now, Duration interval) { return should_send(true, now, interval); }

 private:
  Instant last_{};
  bool has_sent_ = false;
  bool was_marked_ = false;
};

/// When a flow may send its next frame. Keeps picoseconds, so that the rate is exact over many
/// frames; ready_at() is rounded up to whole nanoseconds.
class Pacer {
 public:
  Instant ready_at() const {
    return Instant(Duration(static_cast<int64_t>((ready_ps_ + 999) / 1000)));
  }
  /// A frame was sent at `now`, which is not before ready_at().
  void sent(uint32_t bytes, uint64_t rate_bps, Instant now) {
    const uint64_t now_ps = nanoseconds_since_start(now) * 1000;
    // Give back the time that rounding up has cost, and no more.
    if (ready_ps_ + 1000 <= now_ps) ready_ps_ = now_ps;
    ready_ps_ += uint64_t{bytes} * 8'000'000 * 1'000'000 / rate_bps;
  }

 private:
  uint64_t ready_ps_ = 0;
};

}  // namespace rocemu::engine
