// Datagrams: the destinations of a UD QP's sends, and the handling of received datagrams (IBTA vol
// 1, 9.8.3)
#pragma once

#include <optional>
#include <span>

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::ud {

/// The space at the start of each receive buffer for the global route header (ibv_post_recv(3)).
inline constexpr uint32_t kGrhSize = 40;

/// Returns the WQE's error, if it has one of the errors that only a WQE of a UD QP can have.
std::optional<LocalError> check(const TransportContext& context, const QueuePair& qp,
                                const abi::SendWqe& wqe, uint64_t length);

/// Returns the path of a WQE for which check() returned no error.
Path path_of(const TransportContext& context, const QueuePair& qp, const abi::SendWqe& wqe);

/// Returns the Q_Key of a request. The QP's Q_Key replaces a Q_Key whose highest bit is set (IBTA
/// vol 1, 10.2.5).
constexpr uint32_t qkey_of(const QueuePair& qp, const abi::SendWqe& wqe) {
  return (wqe.ud.remote_qkey & 0x80000000u) != 0 ? qp.attr.qkey : wqe.ud.remote_qkey;
}

/// Handles a received datagram. `frame` is the whole frame, starting with its Ethernet header.
void on_packet(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
               const wire::OpcodeInfo& info, std::span<const uint8_t> frame);

}  // namespace rocemu::engine::ud
