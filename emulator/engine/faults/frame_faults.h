// Applies rules to frames on their way from the sending to the receiving device.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "emulator/engine/faults/delayed_frames.h"
#include "emulator/engine/faults/rule_matcher.h"
#include "emulator/engine/link/switch.h"
#include "emulator/engine/objects/queue_pair.h"
#include "emulator/engine/step.h"
#include "wire/packet.h"

namespace rocemu::engine::faults {

class FaultInjector;

class FrameFaults {
 public:
  /// All arguments must outlive this object.
  FrameFaults(FaultInjector& injector, FramePool& pool, Switch& network, Step& step);

  /// Returns whether there is a rule for frames.
  bool watches() const { return rules_.watches_frames(); }
  /// Returns the number (FrameMarks::number) of the frame that is about to be sent or has arrived
  /// from outside.
  uint64_t next_number() { return ++latest_number_; }
  /// Passes the frame to the switch, or applies rules to it. `qp` is the QP of this fabric that
  /// sends the frame, or that will receive it from outside.
  void send(Departure&& departure, const QueuePair* qp) {
    if (watches()) [[unlikely]] {
      return apply(std::move(departure), qp);
    }
    switch_.forward(std::move(departure));
  }
  /// Passes on the frames whose delay is over, and those that other frames have overtaken often
  /// enough.
  void release_due();
  std::optional<Instant> next_deadline() const { return delayed_.next(); }
  size_t delayed() const { return delayed_.size(); }

 private:
  void apply(Departure departure, const QueuePair* qp);
  /// Passes an injected frame to the switch. `with` is the frame on which the rule acted.
  void forward_made_up(Departure made_up, const Departure& with);
  void inject(const MadeUpFrame& made_up, const Departure& with, const wire::Packet& packet,
              const QueuePair* qp);
  void reject_in_place_of_peer(const Rejection& rejection, const Departure& with,
                               const wire::Packet& packet);

  FaultInjector& injector_;
  const RuleMatcher& rules_;
  FramePool& pool_;
  Switch& switch_;
  Step& step_;
  DelayedFrames delayed_;
  uint64_t latest_number_ = 0;
};

}  // namespace rocemu::engine::faults
