#include "emulator/daemon/net/shard_link.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace rocemu::daemon {
namespace {

/// The other thread makes room within its next round, if it has a processor.
constexpr engine::Duration kMaxWait = std::chrono::microseconds(100);

}  // namespace

ShardLink::ShardLink(Waker& waker, EnginePort& engine, std::function<void()> arrived)
    : engine_(engine), arrived_(std::move(arrived)), inbox_(waker) {}

void ShardLink::connect(const Inboxes& inboxes) {
  for (FrameInbox* device : inboxes.devices) ways_.push_back({.to = device});
  ways_.push_back({.to = inboxes.connections});
}

ShardLink::Way& ShardLink::way_of(const engine::ForwardFrame& frame) {
  return frame.to_connections ? ways_.back() : ways_[frame.to.value];
}

void ShardLink::forward(engine::ForwardFrame frame) {
  Way& way = way_of(frame);
  if (!way.waiting.empty() || !way.to->put(frame)) return way.waiting.push_back(std::move(frame));
  way.fresh = true;
}

bool ShardLink::receive(engine::Instant) {
  const std::span<const engine::ForwardedFrame> frames = inbox_.take();
  if (frames.empty()) return false;
  arrived_();
  engine_.submit(engine::ForwardedFrames{frames});
  inbox_.done();
  return true;
}

bool ShardLink::flush(engine::Instant) {
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

bool ShardLink::is_congested() const {
  return std::ranges::any_of(ways_, [](const Way& way) { return !way.waiting.empty(); });
}

bool ShardLink::has_settled(engine::Instant now, engine::Instant deadline) {
  if (std::exchange(settling_, deadline) != deadline) {
    for (Way& way : ways_) way.to_settle = way.to->frames_put();
  }
  const bool all_done = std::ranges::all_of(ways_, [this](const Way& way) {
    return way.to == &inbox_ || way.to->frames_done() >= way.to_settle;
  });
  if (!all_done) return false;
  settling_.reset();
  const size_t answers = inbox_.frames_put();
  while (inbox_.frames_done() < answers) receive(now);
  return true;
}

std::optional<engine::Duration> ShardLink::longest_wait() const {
  return kMaxWait;
}

}  // namespace rocemu::daemon
