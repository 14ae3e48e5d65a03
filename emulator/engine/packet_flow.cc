// From a frame that reached a device to the half of the QP that it is for: the checks that come
// before any protocol state is looked at (IBTA vol 1, 9.6 "packet transport header validation").
// Whatever fails them is counted by reason and dropped without an answer.
#include "emulator/engine/fabric.h"
#include "emulator/engine/requester.h"
#include "emulator/engine/responder.h"

namespace rocemu::engine {
namespace {

wire::Transport transport_of(abi::QpType type) {
  switch (type) {
    case abi::QpType::kRc:
      return wire::Transport::kRc;
    case abi::QpType::kUc:
      return wire::Transport::kUc;
    case abi::QpType::kUd:
      return wire::Transport::kUd;
    case abi::QpType::kXrcSend:
    case abi::QpType::kXrcRecv:
      return wire::Transport::kXrc;
  }
  __builtin_unreachable();
}

}  // namespace

void Fabric::receive(DeviceIndex index, std::span<const uint8_t> bytes) {
  if (config_.trace_frames && bytes.size() <= Frame::kCapacity) {
    Frame frame = frames_.allocate();
    std::copy(bytes.begin(), bytes.end(), frame.storage().begin());
    frame.set_size(bytes.size());
    outputs_->list.emplace_back(FrameTrace{now_, std::move(frame)});
  }
  if (!wire::check_icrc(bytes)) {
    // A frame too short to have an ICRC is malformed rather than corrupt.
    const bool parses = static_cast<bool>(wire::parse_frame(bytes));
    device(index).counters.add(parses ? Counter::kDroppedBadIcrc : Counter::kDroppedMalformed);
    return;
  }
  arrive(index, bytes);
}

void Fabric::arrive(DeviceIndex index, std::span<const uint8_t> bytes) {
  Counters& counters = device(index).counters;
  counters.add(Counter::kFramesIn);
  counters.add(Counter::kBytesIn, bytes.size());

  const auto packet = wire::parse_frame(bytes);
  if (!packet) return counters.add(Counter::kDroppedMalformed);
  const wire::OpcodeInfo& info = *wire::find_opcode(packet->bth.opcode);

  QueuePair* qp = qps.find(QpNumber{packet->bth.dest_qpn});
  // 9.6.1.1: a QP in RESET, INIT or ERR does not receive.
  if (qp == nullptr || qp->device != index || !qp->can_receive()) {
    return counters.add(Counter::kDroppedUnknownQp);
  }
  if (info.transport != transport_of(qp->type)) {
    return counters.add(Counter::kDroppedWrongTransport);
  }
  if ((packet->bth.pkey & 0x7fff) != (wire::kDefaultPkey & 0x7fff)) {
    return counters.add(Counter::kDroppedWrongPkey);
  }
  // 9.6.1.5.1: a connected QP takes packets from its peer's address only.
  if (packet->src_ip != qp->path.dst_ip || packet->dst_ip != qp->path.src_ip) {
    return counters.add(Counter::kDroppedWrongSource);
  }
  if (info.is_response) {
    requester::on_response(*this, *qp, *packet, info);
  } else {
    responder::on_request(*this, *qp, *packet, info);
  }
}

}  // namespace rocemu::engine
