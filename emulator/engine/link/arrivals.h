// Frames that came from outside the fabric in one burst and are intact. The step that brings them
// handles all of them, so that their bytes stay where they came.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "emulator/engine/base/frame.h"
#include "emulator/engine/base/ids.h"
#include "wire/packet.h"

namespace rocemu::engine {

struct Arrival {
  DeviceIndex to;
  std::span<const uint8_t> bytes;
  Frame copy;  // whose bytes they are, if they are not the caller's
  wire::Result<wire::Packet> packet;
};

class Arrivals {
 public:
  void push(Arrival&& arrival) { list_.push_back(std::move(arrival)); }
  bool empty() const { return next_ == list_.size(); }
  /// Those not taken yet.
  std::span<const Arrival> waiting() const { return std::span(list_).subspan(next_); }
  /// Takes the next one; not if there is none. Valid until clear().
  const Arrival& take() { return list_[next_++]; }
  /// Forgets those that were taken, which is all of them.
  void clear() {
    list_.clear();
    next_ = 0;
  }

 private:
  std::vector<Arrival> list_;
  size_t next_ = 0;
};

}  // namespace rocemu::engine
