// The life of receive WQEs, which are posted, filled and completed
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::receive_queue {

/// The extent of a message in one packet: a part of it, or the whole message
enum class Extent { kPart, kWhole };
inline Extent extent_of(const wire::OpcodeInfo& info) {
  return info.is_first && info.is_last ? Extent::kWhole : Extent::kPart;
}

/// Adds a receive WQE that the client posted.
void post(TransportContext& context, QueuePair& qp, std::span<const std::byte> wqe);

/// Returns whether the CQ of the QP's XRC SRQ has overrun, so that no more WQEs of the SRQ
/// complete.
bool failed(const TransportContext& context, const QueuePair& qp);
/// Returns whether the present message has taken a WQE already, or there is a WQE that it can take.
bool available(const TransportContext& context, const QueuePair& qp);
/// Returns whether the WQE that the next message takes has space for `length` bytes. A malformed
/// WQE counts as having space: the error is detected when the WQE is used.
bool has_room(const TransportContext& context, const QueuePair& qp, uint64_t length);
/// Takes the oldest WQE, which must exist, for a message. A SEND takes it when it begins, a WRITE
/// with immediate when it ends.
void take(TransportContext& context, QueuePair& qp);
/// Gives the WQE that a message had taken back to the SRQ. Called before the QP is reset or
/// destroyed.
void give_back(TransportContext& context, QueuePair& qp);

/// Stores the payload of a SEND behind the earlier payload of the message.
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
