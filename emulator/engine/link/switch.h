// Forwards frames: to a device of this fabric, over its link; to another shard of the fabric
// (shard.h); or out to the network.
#pragma once

#include "emulator/engine/base/frame.h"
#include "emulator/engine/config.h"
#include "emulator/engine/link/departure.h"
#include "emulator/engine/link/link.h"
#include "emulator/engine/objects/multicast_groups.h"
#include "emulator/engine/step.h"

namespace rocemu::engine {

class Switch {
 public:
  /// All of them outlive this.
  Switch(const FabricConfig& config, const MulticastTable& multicast, FramePool& frames, Link& link,
         Step& step)
      : config_(config), multicast_(multicast), frames_(frames), link_(link), step_(step) {}

  void forward(Departure&& departure) {
    trace(departure);
    if (config_.shard.of != Shard::Of::kAll && forward_to_shard(departure)) return;
    if (departure.to) {
      link_.push({step_.now() + config_.link_latency, *departure.to, std::move(departure.frame),
                  departure.check_icrc, !departure.from});
    } else if (departure.from) {
      step_.emit(TransmitFrame{*departure.from, std::move(departure.frame)});
    }
  }
  /// Takes frames of other shards.
  void receive(const ForwardedFrames& input);
  /// Shows the frame to the capture, unless it was shown before.
  void trace(const Departure& departure) {
    if (!config_.trace_frames || departure.traced) return;
    step_.emit(FrameTrace{step_.now(), departure.frame, departure.marks});
  }

 private:
  /// False if the frame is for this shard.
  bool forward_to_shard(Departure& departure);
  bool concerns_nobody(const ForwardedFrame& forwarded) const;

  const FabricConfig& config_;
  const MulticastTable& multicast_;
  FramePool& frames_;
  Link& link_;
  Step& step_;
};

}  // namespace rocemu::engine
