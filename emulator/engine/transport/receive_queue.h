// The life of receive WQEs, which are posted, filled and completed
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::receive_queue {

/// The part of a message that a packet contains
enum class Extent { kPart, kWhole };
inline Extent extent_of(const wire::OpcodeInfo& info) {
  return info.is_first && info.is_last ? Extent::kWhole : Extent::kPart;
}

/// Adds a receive WQE that the client posted.
void post(TransportContext& context, QueuePair& qp, std::span<const std::byte> wqe);

/// Returns whether the CQ of the QP's XRC SRQ has overrun, so that no more WQEs of the SRQ
/// complete.
bool failed(const TransportContext& context, const QueuePair& qp);
/// Returns whether the present message has a WQE already, or can take one.
bool available(const TransportContext& context, const QueuePair& qp);
/// Returns whether the WQE that this message uses or will take has space for `length` bytes. A
/// malformed WQE counts as having space: the error is detected when the WQE is used.
bool has_room(const TransportContext& context, const QueuePair& qp, uint64_t length);
/// Returns the WQE that the next message but `ahead` will take (0: the present message, or the next
/// one). Returns nothing if there is none yet, or the QP shares its WQEs with other QPs.
std::optional<ReceiveWqe> find_next(const QueuePair& qp, uint32_t ahead);
/// Takes the oldest WQE for a message, unless the message has a WQE already. There must be a WQE. A
/// SEND takes its WQE when it begins, a WRITE with immediate when it ends.
void take(TransportContext& context, QueuePair& qp);
/// Puts the WQE of an incomplete message back into the SRQ. Called before the QP is reset or
/// destroyed.
void give_back(TransportContext& context, QueuePair& qp);

/// Stores the payload of a packet of a SEND behind the payload of the packets before.
std::optional<Verdict> scatter(TransportContext& context, QueuePair& qp,
                               std::span<const uint8_t> payload, Extent extent);

/// Completes the message and its WQE. Returns false if the CQ overran, so that the application does
/// not get the completion.
bool complete(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
              const wire::OpcodeInfo& info);
/// Completes the WQE of a message that failed, with that status.
void fail(TransportContext& context, QueuePair& qp, abi::WcStatus status, VendorError vendor);

/// Completes every WQE of the QP with IBV_WC_WR_FLUSH_ERR. An SRQ keeps its WQEs.
void flush(TransportContext& context, QueuePair& qp);

}  // namespace rocemu::engine::receive_queue
