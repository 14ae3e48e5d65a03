// The send path of a device: completes the packet's headers, makes a frame of the packet, counts
// the frame, and passes it to the switch by way of the rules for frames.
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

  /// Returns an empty frame with space for payload.
  Frame allocate() { return frames_.allocate(); }
  /// Sends `frame`, whose payload of `payload_size` bytes is in place, on the QP's path.
  void send(QueuePair& qp, wire::Packet& packet, size_t payload_size, Frame frame,
            const Resend& resend = {});
  /// Sets the fields of a packet that are the same in all packets of the QP.
  void address(const QueuePair& qp, wire::Packet& packet) const;
  /// Returns whether a frame of the QP, which is an RC QP, could be seen or changed on its way, or
  /// lost.
  bool is_way_watched(const QueuePair& qp) const;
  /// Does the same as send() for a frame that nothing can see, except that the caller takes the
  /// packet to its receiver.
  void count_unseen(const QueuePair& qp, size_t frame_size);
  /// Sends a packet that already contains its source and destination. `inside` is the destination
  /// device, if it is in the fabric.
  void send(DeviceIndex from, std::optional<DeviceIndex> inside, const wire::Packet& packet,
            size_t payload_size, Frame frame, const Resend& resend) {
    send(from, inside, packet, payload_size, std::move(frame), resend, nullptr);
  }

 private:
  void send(DeviceIndex from, std::optional<DeviceIndex> inside, const wire::Packet& packet,
            size_t payload_size, Frame frame, const Resend& resend, const QueuePair* qp);
  /// Returns the traffic class of a QP's packet: that of the path, except for the ECN bits of
  /// packets and the DSCP of CNPs if the network has congestion control.
  uint8_t traffic_class_of(const QueuePair& qp, const wire::Packet& packet) const;
  /// Sends a copy of the packet to each device of the fabric that has a QP in the group, and to the
  /// network outside.
  void send_to_group(const Departure& departure, const wire::Packet& packet, const QueuePair* qp);

  const FabricConfig& config_;
  Objects& objects_;
  FramePool& frames_;
  faults::FrameFaults& way_out_;
  const Step& step_;
};

}  // namespace rocemu::engine
