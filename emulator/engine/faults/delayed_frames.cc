#include "emulator/engine/faults/delayed_frames.h"

#include <algorithm>

namespace rocemu::engine::faults {

void DelayedFrames::hold(const Flow& flow, uint32_t overtakers, Duration longest, Instant now,
                         Departure departure) {
  held_.push_back({{now + longest, next_number_}, flow, overtakers});
  delay(longest, now, std::move(departure));
}

void DelayedFrames::pass(const Flow& flow, Instant now) {
  std::erase_if(held_, [&](Held& held) {
    if (held.flow != flow || --held.overtakers != 0) return false;
    auto node = by_time_.extract(held.key);
    if (node.empty()) return true;  // it was already due
    node.key() = {now, next_number_++};
    by_time_.insert(std::move(node));
    return true;
  });
}

std::optional<Departure> DelayedFrames::take_due(Instant now) {
  if (by_time_.empty() || by_time_.begin()->first.first > now) return std::nullopt;
  auto node = by_time_.extract(by_time_.begin());
  std::erase_if(held_, [&](const Held& held) { return held.key == node.key(); });
  Delayed& delayed = node.mapped();
  delayed.departure.marks.held = now - delayed.since;
  return std::move(delayed.departure);
}

std::optional<Instant> DelayedFrames::next() const {
  if (by_time_.empty()) return std::nullopt;
  return by_time_.begin()->first.first;
}

}  // namespace rocemu::engine::faults
