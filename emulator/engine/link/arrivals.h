// Intact frames that arrived from outside the fabric in one burst. They are all handled in the step
// that received them, so their bytes need not be copied.
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
  Frame copy;  // owns the bytes, unless the caller does
  wire::Result<wire::Packet> packet;
};

class Arrivals {
 public:
  void push(Arrival&& arrival) { list_.push_back(std::move(arrival)); }
  bool empty() const { return next_ == list_.size(); }
  /// Returns the arrivals that have not been taken.
  std::span<const Arrival> waiting() const { return std::span(list_).subspan(next_); }
  /// Removes and returns the next arrival, which must exist. The reference is valid until clear().
  const Arrival& take() { return list_[next_++]; }
  /// Empties the list. Every arrival must have been taken before.
  void clear() {
    list_.clear();
    next_ = 0;
  }

 private:
  std::vector<Arrival> list_;
  size_t next_ = 0;
};

}  // namespace rocemu::engine
