// The link between the devices of a fabric: the frames in flight, in the order of their arrival.
// While the link is paused, only as many frames leave it as release() allows.
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
  bool check_icrc;  // it may have been damaged in flight
  bool from_outside;
};

class Link {
 public:
  bool empty() const { return frames_.empty(); }
  /// Returns the next frame to arrive. The link must not be empty.
  const InFlight& front() const { return frames_.front(); }
  auto begin() const { return frames_.begin(); }
  auto end() const { return frames_.end(); }

  /// Puts the frame behind all frames that arrive earlier or at the same time. Without a simulated
  /// network, that is always the end of the list.
  void push(InFlight&& frame) {
    auto place = frames_.end();
    while (place != frames_.begin() && std::prev(place)->arrives > frame.arrives) --place;
    frames_.insert(place, std::move(frame));
  }
  /// Returns whether the next frame has arrived at the end of the link. If the link is paused, the
  /// frame may still be held there.
  bool has_arrived(Instant now) const { return !empty() && front().arrives <= now; }
  /// Removes and returns the next frame. has_arrived() must be true, and is_held() false.
  InFlight take() {
    if (paused_) --released_;
    InFlight frame = std::move(frames_.front());
    frames_.pop_front();
    return frame;
  }

  void set_paused(bool paused) { paused_ = paused; }
  bool paused() const { return paused_; }
  /// Pauses the link, and holds all frames on it. A rule can call this while frames are being
  /// handled.
  void pause() {
    if (paused_) return;
    paused_ = true;
    released_ = 0;
  }
  /// Allows the next `count` frames to leave the paused link.
  void release(uint32_t count) { released_ = count; }
  /// Returns whether no frame may leave the link.
  bool is_held() const { return paused_ && released_ == 0; }

 private:
  std::deque<InFlight> frames_;
  bool paused_ = false;
  uint32_t released_ = 0;
};

}  // namespace rocemu::engine
