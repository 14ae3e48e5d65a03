// Packets of one message that arrive in a row: their payload goes to the application's memory in
// one call, before the first of them is looked at, since a call costs about as much for one packet
// as for sixteen. Each packet is then handled as ever, but finds its payload in place.
//
// Nothing is decided here. Where it is not plain that all of them will be accepted, nothing is
// written ahead; if the memory is not there, the packets find that out one by one.
#include <array>

#include "emulator/engine/fabric.h"
#include "emulator/engine/protocol/qp_traits.h"
#include "emulator/engine/transport/receive_queue.h"
#include "emulator/engine/transport/remote_access.h"
#include "emulator/engine/transport/responder.h"

namespace rocemu::engine {
namespace {

using wire::Operation;

/// As many as a requester or responder sends in one turn.
constexpr size_t kMaxPackets = 16;

/// Payload of packets in a row.
class Row {
 public:
  explicit Row(const wire::Packet& first) { add(first); }

  void add(const wire::Packet& packet) {
    payloads_[count_++] = packet.payload;
    bytes_ += packet.payload.size();
    last_ = &packet;
  }
  bool full() const { return count_ == kMaxPackets; }
  const wire::Packet& last() const { return *last_; }
  uint64_t bytes() const { return bytes_; }
  uint32_t count() const { return count_; }
  std::span<const std::span<const uint8_t>> payloads() const { return {payloads_.data(), count_}; }

 private:
  std::array<std::span<const uint8_t>, kMaxPackets> payloads_;
  uint32_t count_ = 0;
  uint64_t bytes_ = 0;
  const wire::Packet* last_ = nullptr;
};

/// The next packet of the same message, to the same QP. All but the last of a message are full.
bool follows(const wire::Packet& packet, const wire::Packet& before, uint32_t mtu) {
  const wire::OpcodeInfo& info = *wire::find_opcode(packet.bth.opcode);
  const wire::OpcodeInfo& info_before = *wire::find_opcode(before.bth.opcode);
  return !info_before.is_last && before.payload.size() == mtu && !info.is_first &&
         info.operation == info_before.operation && info.transport == info_before.transport &&
         !packet.payload.empty() && packet.payload.size() <= mtu &&
         packet.bth.psn == before.bth.psn + 1 && packet.bth.dest_qpn == before.bth.dest_qpn &&
         packet.bth.pkey == before.bth.pkey && packet.src_ip == before.src_ip &&
         packet.dst_ip == before.dst_ip;
}

/// A packet that the QP will take for its own (admission.cc).
bool is_for(const QueuePair& qp, const wire::Packet& packet, const wire::OpcodeInfo& info) {
  return (qp.type == abi::QpType::kRc || qp.type == abi::QpType::kUc) && qp.can_receive() &&
         info.transport == transport_of(qp.type) && packet.bth.pkey == wire::kDefaultPkey &&
         packet.src_ip == qp.path.dst_ip && packet.dst_ip == qp.path.src_ip;
}

std::optional<MemoryList> place_of_send(Fabric& fabric, QueuePair& qp, const Row& row) {
  if (!receive_queue::available(fabric, qp)) return std::nullopt;
  receive_queue::take(fabric, qp);  // as the packet that begins the message is about to
  const ReceiveWqe& wqe = *qp.recv.wqe;
  const uint64_t offset = qp.recv.in_message ? qp.recv.received : 0;
  if (!wqe.well_formed || offset + row.bytes() > total(wqe.sges)) return std::nullopt;
  return resolve(fabric.mrs, wqe.pd, wqe.sges, offset, row.bytes(), abi::kAccessLocalWrite);
}

std::optional<MemoryList> place_of_write(Fabric& fabric, const QueuePair& qp,
                                         const wire::Packet& first, const Row& row) {
  const bool begins = !qp.recv.in_message;
  const wire::Reth& reth = begins ? first.reth : qp.recv.reth;
  const uint64_t offset = begins ? 0 : qp.recv.received;
  if (offset + row.bytes() > reth.dma_length) return std::nullopt;
  const auto place = fabric.mrs.resolve_remote(qp.memory_user(), reth.rkey, reth.va + offset,
                                               row.bytes(), abi::kAccessRemoteWrite);
  return place ? std::optional(MemoryList(*place, row.bytes())) : std::nullopt;
}

std::optional<MemoryList> place_of_request(Fabric& fabric, QueuePair& qp, const wire::Packet& first,
                                           const wire::OpcodeInfo& info, const Row& row) {
  const RecvHalf& recv = qp.recv;
  const bool expected = !recv.refusing && first.bth.psn == recv.expected &&
                        recv.in_message != info.is_first &&
                        (info.is_first || recv.operation == info.operation);
  if (!expected || !responder::operation_allowed(qp, info)) return std::nullopt;
  if (info.operation == Operation::kSend) return place_of_send(fabric, qp, row);
  if (info.operation == Operation::kWrite) return place_of_write(fabric, qp, first, row);
  return std::nullopt;
}

/// Of data for the oldest READ.
std::optional<MemoryList> place_of_answer(const Fabric& fabric, const QueuePair& qp,
                                          const wire::Packet& first, const Row& row) {
  const SendHalf& send = qp.send;
  const bool sending = qp.state == abi::QpState::kRts || qp.state == abi::QpState::kSqd;
  if (!sending || send.queue.empty() || first.bth.psn != send.unacked) return std::nullopt;
  const uint32_t index = send.queue.head();
  const SendState& state = send.queue.state(index);
  const int32_t number = wire::psn_distance(state.first, first.bth.psn);
  if (!state.started || state.kind != RequestKind::kRead || number < 0) return std::nullopt;
  const uint64_t offset = static_cast<uint64_t>(number) * qp.mtu();
  if (offset + row.bytes() > state.length) return std::nullopt;
  const auto wqe = send.queue.header<abi::SendWqe>(index);
  const SgeList list = read_sges(send.queue.rest(index, sizeof(abi::SendWqe)), wqe.num_sge);
  return resolve(fabric.mrs, qp.pd, list, offset, row.bytes(), abi::kAccessLocalWrite);
}

}  // namespace

void Fabric::write_ahead(const InFlight& next, uint32_t limit) {
  if (written_ahead_ != 0 || link_.empty() || link_.paused()) return;
  if (faults.watches(faults::Where::kRequest)) return;
  const auto packet_in = [&](const InFlight& frame) {
    const bool arrives = frame.to == next.to && frame.arrives <= now() && !frame.check_icrc;
    return arrives ? frame.frame.packet() : nullptr;
  };
  const wire::Packet* first = packet_in(next);
  const wire::Packet* second = packet_in(link_.front());
  if (first == nullptr || second == nullptr || !device(next.to).port_is_up()) return;
  QueuePair* qp = qps.find(QpNumber{first->bth.dest_qpn});
  if (qp == nullptr || qp->device != next.to || !follows(*second, *first, qp->mtu())) return;
  const wire::OpcodeInfo& info = *wire::find_opcode(first->bth.opcode);
  if (!is_for(*qp, *first, info)) return;

  Row row(*first);
  for (const InFlight& frame : link_) {
    const wire::Packet* packet = packet_in(frame);
    if (packet == nullptr || row.full() || row.count() == limit) break;
    if (!follows(*packet, row.last(), qp->mtu())) break;
    row.add(*packet);
  }
  const bool ends = wire::find_opcode(row.last().bth.opcode)->is_last;
  if (!ends && row.last().payload.size() != qp->mtu()) return;
  const auto place = info.is_response ? place_of_answer(*this, *qp, *first, row)
                                      : place_of_request(*this, *qp, *first, info, row);
  if (!place || place->write(host_memory_, row.payloads()) != MemoryResult::kDone) return;
  written_ahead_ = row.count();
}

}  // namespace rocemu::engine
