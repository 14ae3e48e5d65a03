// Forwards frames to a device of this fabric, over its link or the simulated network, or to the
// network outside.
#pragma once

#include <utility>

#include "emulator/engine/base/frame.h"
#include "emulator/engine/config.h"
#include "emulator/engine/link/departure.h"
#include "emulator/engine/link/link.h"
#include "emulator/engine/link/network_crossing.h"
#include "emulator/engine/step.h"

namespace rocemu::engine {

class Switch {
 public:
  /// All arguments must outlive this object.
  Switch(const FabricConfig& config, Link& link, NetworkCrossing& crossing, Step& step)
      : config_(config), link_(link), crossing_(crossing), step_(step) {}

  void forward(Departure&& departure) {
    trace(departure);
    if (crossing_.takes(departure)) [[unlikely]] {
      crossing_.inject(std::move(departure));
    } else if (departure.to) {
      link_.push({step_.now() + config_.link_latency, *departure.to, std::move(departure.frame),
                  departure.check_icrc, !departure.from});
    } else if (departure.from) {
      step_.emit(TransmitFrame{*departure.from, std::move(departure.frame)});
    }
  }
  /// Emits the frame as a FrameTrace if frames are traced, unless this was done before.
  void trace(const Departure& departure) {
    if (!config_.trace_frames || departure.traced) return;
    step_.emit(FrameTrace{step_.now(), departure.frame, departure.marks});
  }

 private:
  const FabricConfig& config_;
  Link& link_;
  NetworkCrossing& crossing_;
  Step& step_;
};

}  // namespace rocemu::engine
