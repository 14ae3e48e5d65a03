// The link between the devices of a fabric: frames under way, in the order in which they arrive.
// It may be paused; then it lets go of as many frames as it is told to.
#pragma once

#include <cstdint>
#include <deque>
#include <iterator>
#include <span>
#include <utility>

#include "emulator/engine/base/frame.h"
#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/time.h"

namespace rocemu::engine {

struct InFlight {
  Instant arrives;
  DeviceIndex to;
  Frame frame;
  bool check_icrc;  // it may have been damaged on its way
  bool from_outside;
};

class Link {
 public:
  bool empty() const { return frames_.empty(); }
  /// The next one to arrive; not of an empty link.
  const InFlight& front() const { return frames_.front(); }
  auto begin() const { return frames_.begin(); }
  auto end() const { return frames_.end(); }

  /// Puts the frame behind all that arrive before it or at the same time. Without a simulated
  /// network it is always the last.
  void push(InFlight&& frame) {
    auto place = frames_.end();
    while (place != frames_.begin() && std::prev(place)->arrives > frame.arrives) --place;
    frames_.insert(place, std::move(frame));
  }
  /// A frame has come to the link's end, where a pause may hold it.
  bool has_arrived(Instant now) const { return !empty() && front().arrives <= now; }
  /// Takes the next frame that has_arrived(). Only if the link is not held.
  InFlight take() {
    if (paused_) --released_;
    InFlight frame = std::move(frames_.front());
    frames_.pop_front();
    return frame;
  }

  void set_paused(bool paused) { paused_ = paused; }
  bool paused() const { return paused_; }
  /// Of a rule, while frames are handled: none that has arrived by now goes on.
  void pause() {
    if (paused_) return;
    paused_ = true;
    released_ = 0;
  }
  /// Lets so many frames go, while it is paused.
  void release(uint32_t count) { released_ = count; }
  /// No frame may leave it.
  bool is_held() const { return paused_ && released_ == 0; }

 private:
  std::deque<InFlight> frames_;
  bool paused_ = false;
  uint32_t released_ = 0;
};

}  // namespace rocemu::engine
