// Frames that a fault delays until a time, or until other frames have overtaken them
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "emulator/engine/base/time.h"
#include "emulator/engine/faults/rule_matcher.h"
#include "emulator/engine/link/departure.h"

namespace rocemu::engine::faults {

class DelayedFrames {
 public:
  void delay(Duration delay, Instant now, Departure departure) {
    by_time_.emplace(std::pair(now + delay, next_number_++), Delayed{now, std::move(departure)});
  }
  /// Holds the frame until `overtakers` more frames of the same flow have passed, or until
  /// `longest` is over.
  void hold(const Flow& flow, uint32_t overtakers, Duration longest, Instant now,
            Departure departure);
  /// Notes that a frame of the flow overtakes the held ones. Those that have been overtaken often
  /// enough are then due.
  void pass(const Flow& flow, Instant now);

  /// Removes and returns the next frame that is due by now. Its marks contain the time for which it
  /// was held.
  std::optional<Departure> take_due(Instant now);
  std::optional<Instant> next() const;
  size_t size() const { return by_time_.size(); }

 private:
  using Key = std::pair<Instant, uint64_t>;
  struct Delayed {
    Instant since;
    Departure departure;
  };
  struct Held {
    Key key;  // in by_time_
    Flow flow;
    uint32_t overtakers;
  };

  std::map<Key, Delayed> by_time_;
  std::vector<Held> held_;
  uint64_t next_number_ = 0;
};

}  // namespace rocemu::engine::faults
