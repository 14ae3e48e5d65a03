// Datagrams: where a UD QP's sends go, and what it does with those that arrive (IBTA vol 1, 9.8.3).
#pragma once

#include <optional>
#include <span>

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::ud {

/// Room at the start of each receive buffer for the global route header (ibv_post_recv(3)).
inline constexpr uint32_t kGrhSize = 40;

/// What is wrong with the WQE, beyond what is checked of all.
std::optional<LocalError> check(const TransportContext& context, const QueuePair& qp,
                                const abi::SendWqe& wqe, uint64_t length);

/// The way of a WQE that was checked.
Path path_of(const TransportContext& context, const QueuePair& qp, const abi::SendWqe& wqe);

/// IBTA vol 1, 10.2.5: the QP's own Q_Key stands for one with the highest bit set.
constexpr uint32_t qkey_of(const QueuePair& qp, const abi::SendWqe& wqe) {
  return (wqe.ud.remote_qkey & 0x80000000u) != 0 ? qp.attr.qkey : wqe.ud.remote_qkey;
}

/// `frame` is all of it, from its Ethernet header on.
void on_packet(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
               const wire::OpcodeInfo& info, std::span<const uint8_t> frame);

}  // namespace rocemu::engine::ud
