// The path of a frame from its arrival at a device to the sending or receiving half of its QP. The
// frame is checked before any protocol state is used (IBTA vol 1, 9.6 "packet transport header
// validation"). Frames that fail a check are counted by reason and dropped without an answer.
#pragma once

#include <cstdint>
#include <span>

#include "emulator/engine/cm/connection_manager.h"
#include "emulator/engine/link/arrivals.h"
#include "emulator/engine/link/link.h"
#include "emulator/engine/transport/context.h"
#include "wire/packet.h"

namespace rocemu::engine {

class Admission {
 public:
  /// All arguments must outlive this object.
  Admission(TransportContext& context, cm::ConnectionManager& connections, Arrivals& arrivals,
            FramePool& frames, Step& step)
      : context_(context),
        connections_(connections),
        arrivals_(arrivals),
        frames_(frames),
        step_(step) {}

  /// Takes frames from outside the fabric. Damaged frames are counted and dropped. Intact frames
  /// arrive at once, or pass through the rules for frames first, if there are such rules.
  void receive(const ReceivedFrames& input);
  /// Handles a frame that arrives from outside the fabric.
  void arrive(const Arrival& arrival);
  /// Handles a frame that arrives over the link between the fabric's devices.
  void arrive(const InFlight& in_flight);
  /// Handles the next of the requests, which arrives without a frame.
  void arrive(ShortRequests& requests);

 private:
  void receive(const ReceivedFrame& received, bool disturbed);
  void arrive(DeviceIndex device, std::span<const uint8_t> bytes,
              const wire::Result<wire::Packet>& packet, bool from_outside);
  /// Handles a frame of this fabric that carries its parsed packet.
  void arrive_parsed(DeviceIndex device, const Frame& frame);
  void drop_damaged(DeviceIndex device, std::span<const uint8_t> bytes);
  /// Counts a frame that arrives. Returns false if the port is down, so that the frame is lost.
  bool count_arrival(DeviceIndex device, size_t size);
  /// Passes the packet to its destination QPs. `frame` may be empty unless the packet is a
  /// datagram.
  void dispatch(DeviceIndex device, const wire::Packet& packet, std::span<const uint8_t> frame);
  void admit(QueuePair& qp, DeviceIndex device, const wire::Packet& packet,
             const wire::OpcodeInfo& info, std::span<const uint8_t> frame);
  void process(QueuePair& qp, const wire::Packet& packet, const wire::OpcodeInfo& info,
               std::span<const uint8_t> frame);
  Counters& counters_of(DeviceIndex device) { return context_.objects().devices[device].counters; }

  TransportContext& context_;
  cm::ConnectionManager& connections_;
  Arrivals& arrivals_;
  FramePool& frames_;
  Step& step_;
};

}  // namespace rocemu::engine
