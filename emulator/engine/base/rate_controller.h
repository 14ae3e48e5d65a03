// The interface of congestion control at the sender, which is pure like the engine: it reads no
// clock. A scheme takes the events of its flow and returns the rate at which the flow may send.
// Bytes are counted as on the wire.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "emulator/engine/base/time.h"

namespace rocemu::engine {

class RateController {
 public:
  virtual ~RateController() = default;

  /// Expires the timers that are due by `now`, in order. A late call has the same result as calls
  /// in time, so an idle flow needs no calls.
  virtual void advance(Instant now) = 0;
  /// Notes that the flow has sent `bytes`.
  virtual void on_sent(uint32_t bytes, Instant now) = 0;
  /// Notes that a CNP for the flow arrived.
  virtual void on_cnp(Instant now) = 0;
  /// Notes that `bytes` were acknowledged, the last of them `round_trip` after they were sent.
  virtual void on_acknowledged(uint32_t bytes, Duration round_trip, Instant now) = 0;

  /// Returns the rate after the latest call of a function above.
  virtual uint64_t rate_bps() const = 0;
  /// Returns the time at which advance() changes the rate next; nothing if no timer will change it.
  virtual std::optional<Instant> next_deadline() const = 0;
};

/// Decides, at the notification point, whether to send a CNP for a flow. The first mark is reported
/// immediately. After that, one CNP is sent at the end of each interval in which a frame was marked
/// (Zhu et al., SIGCOMM 2015, section 3.1 and figure 6). There is no timer: the CNP is sent when a
/// frame, marked or not, arrives after the interval's end.
class CnpLimiter {
 public:
  /// Returns whether to send a CNP now that a frame of the flow has arrived.
  bool should_send(bool is_marked, Instant now, Duration interval) {
    was_marked_ = was_marked_ || is_marked;
    if (!was_marked_ || (has_sent_ && now - last_ < interval)) return false;
    was_marked_ = false;
    has_sent_ = true;
    last_ = now;
    return true;
  }
  /// Returns, for callers that ignore unmarked frames, whether to send a CNP now that a marked
  /// frame has arrived.
  bool should_send(Instant now, Duration interval) { return should_send(true, now, interval); }

 private:
  Instant last_{};
  bool has_sent_ = false;
  bool was_marked_ = false;
};

/// Computes when a flow may send its next frame. It counts picoseconds, so that the rate is exact
/// over many frames. ready_at() is rounded up to whole nanoseconds.
class Pacer {
 public:
  Instant ready_at() const {
    return Instant(Duration(static_cast<int64_t>((ready_ps_ + 999) / 1000)));
  }
  /// Notes that a frame was sent at `now`, which must not be before ready_at().
  void sent(uint32_t bytes, uint64_t rate_bps, Instant now) {
    const uint64_t now_ps = nanoseconds_since_start(now) * 1000;
    // A frame that is late only because ready_at() was rounded up does not delay the next frame.
    // The time of a longer pause is not made up for.
    if (ready_ps_ + 1000 <= now_ps) ready_ps_ = now_ps;
    ready_ps_ += uint64_t{bytes} * 8'000'000 * 1'000'000 / rate_bps;
  }

 private:
  uint64_t ready_ps_ = 0;
};

}  // namespace rocemu::engine
