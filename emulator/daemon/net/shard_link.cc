#include "emulator/daemon/net/shard_link.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace rocemu::daemon {
namespace {

/// The other thread makes room within its next round, if it has a processor.
constexpr engine::Duration kLongestWait = std::chrono::microseconds(100);

}  // namespace

Crossing::Crossing(Waker& waker, EnginePort& engine, std::function<void()> arrived)
    : engine_(engine), arrived_(std::move(arrived)), inbox_(waker) {}

void Crossing::connect(const Inboxes& inboxes) {
  for (FrameInbox* device : inboxes.devices) ways_.push_back({.to = device});
  ways_.push_back({.to = inboxes.connections});
}

Crossing::Way& Crossing::way_of(const engine::ForwardFrame& frame) {
  return frame.to_connections ? ways_.back() : ways_[frame.to.value];
}

void Crossing::forward(engine::ForwardFrame frame) {
  Way& way = way_of(frame);
  if (!way.waiting.empty() || !way.to->put(frame)) return way.waiting.push_back(std::move(frame));
  way.fresh = true;
}

bool Crossing::receive(engine::Instant) {
  const std::span<const engine::ForwardedFrame> frames = inbox_.take();
  if (frames.empty()) return false;
  arrived_();
  engine_.submit(engine::ForwardedFrames{frames});
  inbox_.done();
  return true;
}

bool Crossing::flush(engine::Instant) {
  bool worked = false;
  for (Way& way : ways_) {
    while (!way.waiting.empty() && way.to->put(way.waiting.front())) {
      way.waiting.pop_front();
      way.fresh = true;
    }
    if (!std::exchange(way.fresh, false)) continue;
    way.to->notify();
    worked = true;
  }
  return worked;
}

bool Crossing::is_congested() const {
  return std::ranges::any_of(ways_, [](const Way& way) { return !way.waiting.empty(); });
}

std::optional<engine::Duration> Crossing::longest_wait() const {
  return kLongestWait;
}

}  // namespace rocemu::daemon
