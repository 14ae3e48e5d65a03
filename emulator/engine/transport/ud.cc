#include "emulator/engine/transport/ud.h"

#include <algorithm>
#include <array>

#include "emulator/engine/transport/address_vector.h"
#include "emulator/engine/transport/failure.h"
#include "emulator/engine/transport/receive_queue.h"
#include "wire/ethernet.h"

namespace rocemu::engine::ud {
namespace {

using abi::SendWqe;
using abi::WcStatus;

/// Returns the 40 bytes that precede a datagram in its receive buffer (IBTA vol 1, annex
/// A17.4.5.2). An IPv4 header is in the last 20 bytes, and the bytes before it are undefined. They
/// are zeros, as in Linux, except with `--adversarial=undefined`.
std::array<uint8_t, kGrhSize> route_header(std::span<const uint8_t> frame, bool is_v4,
                                           const adversarial::Adversary* adversary) {
  std::array<uint8_t, kGrhSize> grh{};
  if (adversary != nullptr) [[unlikely]]
    grh.fill(adversary->undefined_byte());
  const size_t size = is_v4 ? wire::Ipv4Header::kSize : wire::Ipv6Header::kSize;
  std::ranges::copy(frame.subspan(wire::EthernetHeader::kSize, size), grh.end() - size);
  return grh;
}

std::optional<Verdict> place(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
                             std::span<const uint8_t> frame) {
  const auto grh = route_header(frame, packet.src_ip.is_v4(), context.adversary());
  RecvHalf& recv = qp.recv;
  recv.received = 0;
  using enum receive_queue::Extent;
  if (const auto verdict = receive_queue::scatter(context, qp, grh, kWhole)) return verdict;
  recv.received = kGrhSize;
  if (const auto verdict = receive_queue::scatter(context, qp, packet.payload, kWhole))
    return verdict;
  recv.received += packet.payload.size();
  return std::nullopt;
}

}  // namespace

std::optional<LocalError> check(const TransportContext& context, const QueuePair& qp,
                                const SendWqe& wqe, uint64_t length) {
  // IBTA vol 1, 10.2.2.2: the address handle must belong to the QP's protection domain.
  const AddressHandle* ah = context.objects().ahs.find(AhId{wqe.ud.ah});
  if (ah == nullptr || ah->pd != qp.pd) {
    return LocalError{WcStatus::kLocQpOpErr, VendorError::kBadAddressHandle};
  }
  // IBTA vol 1, 9.8.3: a message is one packet.
  if (length > qp.mtu()) return LocalError{WcStatus::kLocLenErr, VendorError::kMessageTooLong};
  return std::nullopt;
}

Path path_of(const TransportContext& context, const QueuePair& qp, const SendWqe& wqe) {
  Path path =
      resolve_path(context.objects(), qp.device, context.objects().ahs.find(AhId{wqe.ud.ah})->attr,
                   qp.number, QpNumber{wqe.ud.remote_qpn & 0xffffff});
  path.udp_src_port = datagram_source_port(context.objects().devices[qp.device].config, qp.number);
  return path;
}

void on_packet(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
               const wire::OpcodeInfo& info, std::span<const uint8_t> frame) {
  Counters& counters = context.counters_of(qp);
  // IBTA vol 1, 9.6.1.4.1: the packet must have the QP's Q_Key.
  if (packet.deth.qkey != qp.attr.qkey) return counters.add(Counter::kDroppedWrongQkey);
  if (packet.payload.size() > qp.mtu()) return counters.add(Counter::kDroppedInvalidRequest);
  const QpNumber from{packet.deth.src_qpn};
  if (!receive_queue::available(context, qp)) {
    context.note(ReceiveMissing{qp.client, qp.device, qp.number, qp.srq, from,
                                /*is_repeated=*/false});
    return counters.add(Counter::kDroppedNoReceive);
  }
  // IBTA vol 1, 9.9.3, class D: a message that is too long for the receive WQE is dropped, and the
  // next message uses the WQE.
  if (!receive_queue::has_room(context, qp, kGrhSize + packet.payload.size())) {
    if (receive_queue::has_room(context, qp, packet.payload.size()))
      context.note(GrhMissing{qp.client, qp.device, qp.number, from, packet.payload.size()});
    return counters.add(Counter::kDroppedReceiveTooSmall);
  }
  receive_queue::take(context, qp);
  if (const auto verdict = place(context, qp, packet, frame)) {
    if (*verdict == Verdict::kReceiverGone || *verdict == Verdict::kMemoryNotReady) return;
    const ResponderAction action = action_for(*verdict);
    receive_queue::fail(context, qp, action.status, action.vendor);
    return enter_error(context, qp);
  }
  receive_queue::complete(context, qp, packet, info);
  qp.recv.received = 0;
}

}  // namespace rocemu::engine::ud
