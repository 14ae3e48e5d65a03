// The send path of a device: completes the packet's headers, makes a frame of it, counts it, and
// passes it to the switch through the rules for frames.
#pragma once

#include <cstddef>
#include <optional>

#include "emulator/engine/base/frame.h"
#include "emulator/engine/config.h"
#include "emulator/engine/faults/frame_faults.h"
#include "emulator/engine/objects/objects.h"
#include "wire/packet.h"

namespace rocemu::engine {

class Transmitter {
 public:
  /// All arguments must outlive this object.
  Transmitter(const FabricConfig& config, Objects& objects, FramePool& frames,
              faults::FrameFaults& way_out, const Step& step)
      : config_(config), objects_(objects), frames_(frames), way_out_(way_out), step_(step) {}

  /// Returns an empty frame, for payload.
  Frame allocate() { return frames_.allocate(); }
  /// Sends `frame`, whose payload of that size is in place, on the QP's path.
  void send(QueuePair& qp, wire::Packet& packet, size_t payload_size, Frame frame,
            const Resend& resend = {});
  /// Sends a packet that contains its own source and destination. `inside` is the destination
  /// device of the fabric, if there is one.
  void send(DeviceIndex from, std::optional<DeviceIndex> inside, const wire::Packet& packet,
            size_t payload_size, Frame frame, const Resend& resend) {
    send(from, inside, packet, payload_size, std::move(frame), resend, nullptr);
  }

 private:
  void send(DeviceIndex from, std::optional<DeviceIndex> inside, const wire::Packet& packet,
            size_t payload_size, Frame frame, const Resend& resend, const QueuePair* qp);
  /// Returns the traffic class of the QP's packet: the path's, with what congestion control adds.
  uint8_t traffic_class_of(const QueuePair& qp, const wire::Packet& packet) const;
  /// Sends a copy to each device of the fabric that has a member.
  void send_to_group(const Departure& departure, const wire::Packet& packet, const QueuePair* qp);

  const FabricConfig& config_;
  Objects& objects_;
  FramePool& frames_;
  faults::FrameFaults& way_out_;
  const Step& step_;
};

}  // namespace rocemu::engine
