// Work requests, requests at the responder and calls that rules let fail.
#include "emulator/engine/fabric.h"
#include "emulator/engine/request.h"
#include "emulator/engine/responses.h"
#include "wire/aeth.h"
#include "wire/print.h"

namespace rocemu::engine {
namespace {

using abi::SendWqe;
using faults::Flow;
using faults::Occurrence;
using faults::Where;
using wire::NakCode;

/// The verdict that ends in that NAK, if it is one for good.
std::optional<Verdict> verdict_for(uint8_t syndrome) {
  if (wire::aeth_kind(syndrome) != wire::AethKind::kNak) return std::nullopt;
  switch (static_cast<NakCode>(wire::aeth_detail(syndrome))) {
    case NakCode::kInvalidRequest:
      return Verdict::kInvalidRequest;
    case NakCode::kRemoteAccessError:
      return Verdict::kRemoteAccess;
    case NakCode::kRemoteOperationalError:
      return Verdict::kRemoteMemoryUnreachable;
    case NakCode::kPsnSequenceError:
    case NakCode::kInvalidRdRequest:
      break;
  }
  return std::nullopt;
}

/// The QP that a call is about, if it is about one.
QpNumber qp_in(const abi::Request& request) {
  switch (request.op) {
    case abi::Op::kModifyQp:
      return QpNumber{request.body.modify_qp.qpn};
    case abi::Op::kQueryQp:
    case abi::Op::kDestroyQp:
    case abi::Op::kPostSend:
    case abi::Op::kBindMw:
    case abi::Op::kPostRecv:
      return QpNumber{request.body.object.handle};
    case abi::Op::kAttachMcast:
    case abi::Op::kDetachMcast:
      return QpNumber{request.body.mcast.qpn};
    default:
      return {};
  }
}

}  // namespace

std::optional<LocalError> Fabric::work_request_fault(const QueuePair& qp, uint32_t index,
                                                     uint64_t length) {
  SendState& state = qps.find(qp.number)->send.queue.state(index);
  if (state.rules_asked) return state.fault;  // it is being sent again
  state.rules_asked = true;
  const auto wqe = qp.send.queue.header<SendWqe>(index);
  const auto acting = faults.act({.where = Where::kWorkRequest,
                                  .flow = {Flow::Kind::kQp, qp.device.value, qp.order},
                                  .device = qp.device,
                                  .to = qp.path.inside,
                                  .kind = static_cast<uint8_t>(wqe.opcode),
                                  .qp = qp.order,
                                  .qp_num = qp.number.value,
                                  .dest_qp = qp.attr.dest_qp_num,
                                  .message = index + 1,
                                  .size = length,
                                  .wr_id = wqe.wr_id},
                                 now_);
  for (const auto& one : acting) {
    note(one,
         "work request " + std::to_string(wqe.wr_id) + " of QP " + std::to_string(qp.number.value),
         qp.device, &qp);
    if (one.rule->effects.status) {
      state.fault = LocalError{*one.rule->effects.status,
                               static_cast<VendorError>(one.rule->effects.vendor_error)};
    }
  }
  return state.fault;
}

bool Fabric::request_is_taken(QueuePair& qp, const wire::Packet& packet,
                              const wire::OpcodeInfo& info) {
  const auto acting = faults.act({.where = Where::kRequest,
                                  .flow = {Flow::Kind::kQp, qp.device.value, qp.order},
                                  .device = qp.device,
                                  .to = {},
                                  .kind = static_cast<uint8_t>(info.opcode),
                                  .qp = qp.order,
                                  .qp_num = qp.number.value,
                                  .psn = (packet.bth.psn - qp.attr.rq_psn).value(),
                                  .psn_num = packet.bth.psn.value(),
                                  .message = qp.recv.msn + 1,
                                  .size = packet.payload.size()},
                                 now_);
  for (const auto& one : acting) {
    note(one, wire::to_string(packet), qp.device, &qp);
    const faults::Effects& effects = one.rule->effects;
    if (effects.silent) return true;
    if (!effects.rnr && !effects.answer) continue;
    const uint8_t syndrome = effects.answer.value_or(wire::rnr_nak_syndrome(qp.attr.min_rnr_timer));
    if (const auto verdict = verdict_for(syndrome)) {
      responses::refuse(*this, qp, packet.bth.psn, *verdict);
      return true;
    }
    // 9.7.5.2.8 and C9-114: then silence until the expected request comes again.
    const bool is_rnr = wire::aeth_kind(syndrome) == wire::AethKind::kRnrNak;
    qp.recv.nak_outstanding = true;
    device_of(qp).counters.add(is_rnr ? Counter::kRnrNaksSent : Counter::kSequenceNaksSent);
    responses::answer(*this, qp, packet.bth.psn, syndrome);
    return true;
  }
  return false;
}

int Fabric::verb_fault(ClientId client, const abi::Request& request) {
  const DeviceIndex at = clients.at(client);
  const QueuePair* qp = qps.find(qp_in(request));
  Occurrence occurrence{.where = Where::kVerb,
                        .flow = {Flow::Kind::kClient, at.value, client.value},
                        .device = at,
                        .to = {},
                        .kind = static_cast<uint8_t>(request.op)};
  if (qp != nullptr) occurrence.qp = qp->order;
  if (qp != nullptr) occurrence.qp_num = qp->number.value;
  int error = 0;
  for (const auto& one : std::vector(faults.act(occurrence, now_))) {
    note(one, "verb " + std::to_string(static_cast<uint32_t>(request.op)), at, qp);
    if (error == 0) error = one.rule->effects.error;
  }
  return error;
}

int Fabric::verb_fault(const CmCommand& command) {
  const Occurrence occurrence{.where = Where::kVerb,
                              .flow = {Flow::Kind::kChannel, 0, command.channel.value},
                              .device = {},
                              .to = {},
                              .kind = faults::verb_kind(command.command)};
  int error = 0;
  for (const auto& one : std::vector(faults.act(occurrence, now_))) {
    note(one, "rdma_cm command " + std::to_string(static_cast<uint32_t>(command.command)), {},
         nullptr);
    if (error == 0) error = one.rule->effects.error;
  }
  return error;
}

}  // namespace rocemu::engine
