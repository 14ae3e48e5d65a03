// What rules do to frames between the device that sends them and the one that gets them.
#pragma once

#include <cstddef>
#include <optional>

#include "emulator/engine/faults/delayed_frames.h"
#include "wire/packet.h"

namespace rocemu::engine {

class Fabric;
struct QueuePair;

namespace faults {

class FrameFaults {
 public:
  explicit FrameFaults(Fabric& fabric) : fabric_(fabric) {}

  /// Lets the frame go, or does with it what rules want. `qp` is the QP of this fabric that sends
  /// it, or that is to get it from outside.
  void apply(Departure departure, const QueuePair* qp);
  /// Lets go of what was kept until now, and of what has been overtaken often enough.
  void release_due();
  std::optional<Instant> next_deadline() const { return delayed_.next(); }
  size_t delayed() const { return delayed_.size(); }

 private:
  void inject(const MadeUpFrame& made_up, const Departure& with, const wire::Packet& packet,
              const QueuePair* qp);
  void reject_in_place_of_peer(const Rejection& rejection, const Departure& with,
                               const wire::Packet& packet);

  Fabric& fabric_;
  DelayedFrames delayed_;
};

}  // namespace faults
}  // namespace rocemu::engine
