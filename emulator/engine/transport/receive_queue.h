// The life of receive WQEs: posted, filled, completed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::receive_queue {

/// How much of a message a packet brings.
enum class Extent { kPart, kWhole };
inline Extent extent_of(const wire::OpcodeInfo& info) {
  return info.is_first && info.is_last ? Extent::kWhole : Extent::kPart;
}

/// Takes a receive WQE that the client posted.
void post(TransportContext& context, QueuePair& qp, std::span<const std::byte> wqe);

/// Nothing completes there any more: the CQ of the QP's XRC SRQ overran.
bool failed(const TransportContext& context, const QueuePair& qp);
/// Is there a WQE for a message that begins, or has one begun already?
bool available(const TransportContext& context, const QueuePair& qp);
/// Whether the WQE that the next message takes has room for `length` bytes. One that is malformed
/// has: what is wrong with it is found when it is used.
bool has_room(const TransportContext& context, const QueuePair& qp, uint64_t length);
/// The message takes the oldest WQE: a SEND when it begins, a WRITE with immediate when it ends.
/// Only when there is one.
void take(TransportContext& context, QueuePair& qp);
/// The QP is about to be reset or destroyed: its SRQ gets back what a message had taken.
void give_back(TransportContext& context, QueuePair& qp);

/// SEND: places the payload behind what the message already brought.
std::optional<Verdict> scatter(TransportContext& context, QueuePair& qp,
                               std::span<const uint8_t> payload, Extent extent);

/// The message is complete, and its WQE with it. False if the CQ overran, so that the application
/// will not know.
bool complete(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
              const wire::OpcodeInfo& info);
/// The same for a message that failed.
void fail(TransportContext& context, QueuePair& qp, abi::WcStatus status, VendorError vendor);

/// Completes every WQE of the QP with IBV_WC_WR_FLUSH_ERR. An SRQ keeps those it has.
void flush(TransportContext& context, QueuePair& qp);

}  // namespace rocemu::engine::receive_queue
