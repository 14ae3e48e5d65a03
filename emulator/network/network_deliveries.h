// Computes lower bounds of the times at which frames in a simulated network arrive. A caller of
// Network::next_delivery() can skip all events before these times.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "emulator/network/network_model.h"

namespace rocemu::network {

class Network::Model::Deliveries {
 public:
  /// Creates the bounds for a model, which must outlive this object.
  explicit Deliveries(const Model& model) : model_(model) {}

  void add(uint32_t frame);
  void host_became_full(HostId host) { full_hosts_.push_back(host); }
  void host_has_room(HostId host) { std::erase(full_hosts_, host); }
  /// Computes all bounds again. Must be called when rates or routes have changed, since frames may
  /// then arrive earlier.
  void update();
  std::optional<Instant> next();

 private:
  /// A lower bound of a frame's arrival. If the frame has to wait on its path, it arrives later;
  /// the bound is corrected when its time has passed.
  struct Bound {
    uint64_t time_ps = 0;
    uint32_t frame = 0;
    uint32_t generation = 0;  // FrameSlot::generation; if the slot's differs, the frame has left

    bool operator>(const Bound& other) const {
      return time_ps != other.time_ps ? time_ps > other.time_ps : frame > other.frame;
    }
  };

  uint64_t next_event_ps() const;
  uint64_t earliest_delivery(const FrameSlot& frame) const;
  uint64_t earliest_resume(HostId host) const;
  void push(const Bound& bound);
  void pop();

  const Model& model_;
  std::vector<Bound> bounds_;  // a heap with the earliest at the top
  std::vector<HostId> full_hosts_;
};

}  // namespace rocemu::network
