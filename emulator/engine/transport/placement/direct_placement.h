// Direct placement: the payload of a long SEND, WRITE or READ between QPs of one fabric is copied
// from program to program (HostMemory::begin_copy), before the packets are sent. The packets then
// have no payload, and take their usual way through responder and completer.
//
// The requester predicts where the responder will put the payload, or find it. IBTA vol 1, 9.5
// requires that requests are executed in order, so a copy is begun only if all earlier requests of
// the QP have been executed, or are themselves copies that have begun: those are made in the same
// order, and none is made after one that fails. Anything unusual, such as an error, is left to the
// usual way, which copies the bytes again.
#pragma once

#include <cstdint>

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::direct_placement {

enum class Payload : uint8_t {
  kInPackets,  // the packets carry it
  kAwaited,    // it is being copied: the QP waits (QpScheduler::wait_for_memory)
  kPlaced,     // it is in the receiver's memory
  kLater,      // the packets must wait for the QP's next quantum
};

/// Returns whether something must see the payload of packets. Copies are then not begun, and
/// packets carry their payload even if it is placed.
bool is_payload_watched(const TransportContext& context);

/// The decision about the next `count` packets of a message
struct Placement {
  Payload payload;
  uint32_t count;
};
/// Decides about the next packets of the QP's WQE `next`, of which the QP is about to send `count`.
/// Also begins the copies of later packets.
Placement place(TransportContext& context, QueuePair& qp, uint32_t count);
/// Decides about the response to the READ `next`, which the QP is about to send: kPlaced means that
/// all its data is in the requester's memory.
Payload place_response(TransportContext& context, QueuePair& qp);

}  // namespace rocemu::engine::direct_placement
