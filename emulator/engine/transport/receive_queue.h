// The life of receive WQEs: posted, filled, completed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "emulator/engine/fabric.h"

namespace rocemu::engine::receive_queue {

/// Takes a receive WQE that the client posted.
void post(Fabric& fabric, QueuePair& qp, std::span<const std::byte> wqe);

/// Nothing completes there any more: the CQ of the QP's XRC SRQ overran.
bool failed(const Fabric& fabric, const QueuePair& qp);
/// Is there a WQE for a message that begins, or has one begun already?
bool available(const Fabric& fabric, const QueuePair& qp);
/// Whether the WQE that the next message takes has room for `length` bytes. One that is malformed
/// has: what is wrong with it is found when it is used.
bool has_room(const Fabric& fabric, const QueuePair& qp, uint64_t length);
/// The message takes the oldest WQE: a SEND when it begins, a WRITE with immediate when it ends.
/// Only when there is one.
void take(Fabric& fabric, QueuePair& qp);
/// The QP is about to be reset or destroyed: its SRQ gets back what a message had taken.
void give_back(Fabric& fabric, QueuePair& qp);

/// SEND: places the payload behind what the message already brought.
std::optional<Verdict> scatter(Fabric& fabric, QueuePair& qp, std::span<const uint8_t> payload);

/// The message is complete, and its WQE with it. False if the CQ overran, so that the application
/// will not know.
bool complete(Fabric& fabric, QueuePair& qp, const wire::Packet& packet,
              const wire::OpcodeInfo& info);
/// The same for a message that failed.
void fail(Fabric& fabric, QueuePair& qp, abi::WcStatus status, VendorError vendor);

/// Completes every WQE of the QP with IBV_WC_WR_FLUSH_ERR. An SRQ keeps those it has.
void flush(Fabric& fabric, QueuePair& qp);

}  // namespace rocemu::engine::receive_queue
