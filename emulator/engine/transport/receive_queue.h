// The life of receive WQEs: posted, filled, completed
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::receive_queue {

/// The part of a message in a packet
enum class Extent { kPart, kWhole };
inline Extent extent_of(const wire::OpcodeInfo& info) {
  return info.is_first && info.is_last ? Extent::kWhole : Extent::kPart;
}

/// Takes a receive WQE that the client posted.
void post(TransportContext& context, QueuePair& qp, std::span<const std::byte> wqe);

/// Returns true if nothing completes there any more, because the CQ of the QP's XRC SRQ overran.
bool failed(const TransportContext& context, const QueuePair& qp);
/// Returns whether there is a WQE for a message that begins, or the message has taken one already.
bool available(const TransportContext& context, const QueuePair& qp);
/// Returns whether the WQE that the next message takes has space for `length` bytes. A malformed
/// WQE counts as having space: the error is detected when it is used.
bool has_room(const TransportContext& context, const QueuePair& qp, uint64_t length);
/// Takes the oldest WQE, which must exist, for a message: for a SEND when it begins, for a WRITE
/// with immediate when it ends.
void take(TransportContext& context, QueuePair& qp);
/// Called before the QP is reset or destroyed: its SRQ gets back the WQE that a message had taken.
void give_back(TransportContext& context, QueuePair& qp);

/// Stores the payload of a SEND after the earlier payload of the message.
std::optional<Verdict> scatter(TransportContext& context, QueuePair& qp,
                               std::span<const uint8_t> payload, Extent extent);

/// Completes the message and its WQE. Returns false if the CQ overran, so that the application does
/// not learn of it.
bool complete(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
              const wire::OpcodeInfo& info);
/// Completes a message that failed, and its WQE.
void fail(TransportContext& context, QueuePair& qp, abi::WcStatus status, VendorError vendor);

/// Completes every WQE of the QP with IBV_WC_WR_FLUSH_ERR. An SRQ keeps its WQEs.
void flush(TransportContext& context, QueuePair& qp);

}  // namespace rocemu::engine::receive_queue
