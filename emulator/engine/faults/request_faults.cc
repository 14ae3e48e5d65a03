#include "emulator/engine/faults/request_faults.h"

#include <cstring>
#include <string>

#include "emulator/engine/faults/fault_injector.h"
#include "wire/aeth.h"
#include "wire/print.h"

namespace rocemu::engine::faults {
namespace {

using abi::SendWqe;

uint8_t verb_kind(const abi::Request& request) {
  const abi::Request::Body& body = request.body;
  switch (request.op) {
    case abi::Op::kHello:
      if (body.hello.import != 0) return static_cast<uint8_t>(OtherVerb::kImportDevice);
      break;
    case abi::Op::kRegMr:
      if (body.reg_mr.kind == abi::RegionKind::kNull) {
        return static_cast<uint8_t>(OtherVerb::kAllocNullMr);
      }
      if (body.reg_mr.kind == abi::RegionKind::kDevice) {
        return static_cast<uint8_t>(OtherVerb::kRegDmMr);
      }
      break;
    case abi::Op::kDeallocParentDomain:
      return static_cast<uint8_t>(abi::Op::kDeallocPd);
    default:
      break;
  }
  return static_cast<uint8_t>(request.op);
}

/// Returns the number by which rules distinguish the call. rdma_establish() of librdmacm arrives as
/// an accept without parameters.
uint8_t verb_kind(const CmCommand& command) {
  if (command.command == abi::ucma::Command::kAccept &&
      command.in.size() >= offsetof(abi::ucma::Accept, ece)) {
    abi::ucma::ConnParam param;
    std::memcpy(&param, command.in.data() + offsetof(abi::ucma::Accept, param), sizeof param);
    if (param.valid == 0) return static_cast<uint8_t>(OtherVerb::kRdmaEstablish);
  }
  return faults::verb_kind(command.command);
}

/// Returns the QP that a call concerns; QpNumber{} if it concerns none. For ibv_open_qp(3) there is
/// none, because the QP does not belong to the program yet.
QpNumber qp_in(const abi::Request& request) {
  QpNumber qp{};
  const abi::OperationInfo* info = abi::find_operation(request.op);
  if (info == nullptr || request.op == abi::Op::kOpenQp) return qp;
  info->for_each_field([&](const abi::BodyField& field) {
    if (field.kind != abi::BodyValue::kQp || field.of_reply) return;
    qp = QpNumber{static_cast<uint32_t>(field.read(request.body, {}))};
  });
  return qp;
}

}  // namespace

std::optional<LocalError> work_request_fault(FaultInjector& injector, QueuePair& qp, uint32_t index,
                                             uint64_t length) {
  SendState& state = qp.send.queue.state(index);
  if (state.rules_asked) return state.fault;  // it is being retransmitted
  state.rules_asked = true;
  const auto wqe = qp.send.queue.header<SendWqe>(index);
  const auto acting = injector.act({.where = Where::kWorkRequest,
                                    .flow = {Flow::Kind::kQp, qp.device.value, qp.order},
                                    .device = qp.device,
                                    .to = qp.path.inside,
                                    .kind = static_cast<uint8_t>(wqe.opcode),
                                    .qp = qp.order,
                                    .qp_num = qp.number.value,
                                    .dest_qp = qp.attr.dest_qp_num,
                                    .message = index + 1,
                                    .size = length,
                                    .wr_id = wqe.wr_id});
  for (const auto& one : acting) {
    injector.note(one,
                  "work request " + std::to_string(wqe.wr_id) + " of QP " +
                      wire::hexadecimal(qp.number.value),
                  qp.device, &qp);
    if (one.rule->effects.status) {
      state.fault = LocalError{*one.rule->effects.status,
                               static_cast<VendorError>(one.rule->effects.vendor_error)};
    }
  }
  return state.fault;
}

std::optional<RequestFault> request_fault(FaultInjector& injector, const QueuePair& qp,
                                          const wire::Packet& packet,
                                          const wire::OpcodeInfo& info) {
  const auto acting = injector.act({.where = Where::kRequest,
                                    .flow = {Flow::Kind::kQp, qp.device.value, qp.order},
                                    .device = qp.device,
                                    .to = {},
                                    .kind = static_cast<uint8_t>(info.opcode),
                                    .qp = qp.order,
                                    .qp_num = qp.number.value,
                                    .psn = (packet.bth.psn - qp.attr.rq_psn).value(),
                                    .psn_num = packet.bth.psn.value(),
                                    .message = qp.recv.msn + 1,
                                    .size = packet.payload.size()});
  for (const auto& one : acting) {
    injector.note(one, wire::to_string(packet), qp.device, &qp, {.psn = packet.bth.psn.value()});
    const Effects& effects = one.rule->effects;
    if (effects.silent) return RequestFault{};
    if (effects.answer) return RequestFault{effects.answer};
    if (effects.rnr) return RequestFault{wire::rnr_nak_syndrome(qp.attr.min_rnr_timer)};
  }
  return std::nullopt;
}

int verb_fault(FaultInjector& injector, const Objects& objects, ClientId client,
               const abi::Request& request) {
  const DeviceIndex at = objects.clients.device_of(client);
  const QueuePair* qp = objects.qps.find(qp_in(request));
  // A rule counts the opening of a context among those of the device, because the new context has
  // no other occurrences yet.
  const Flow flow = request.op == abi::Op::kHello
                        ? Flow{Flow::Kind::kDevice, at.value, 0}
                        : Flow{Flow::Kind::kClient, at.value, client.value};
  Occurrence occurrence{
      .where = Where::kVerb, .flow = flow, .device = at, .to = {}, .kind = verb_kind(request)};
  occurrence.owner = client;
  if (qp != nullptr) occurrence.qp = qp->order;
  if (qp != nullptr) occurrence.qp_num = qp->number.value;
  int error = 0;
  for (const auto& one : std::vector(injector.act(occurrence))) {
    injector.note(one, "verb " + std::string(name_of(request.op)), at, qp);
    if (error == 0) error = one.rule->effects.error;
  }
  return error;
}

int verb_fault(FaultInjector& injector, const CmCommand& command) {
  const bool opens = command.command == abi::ucma::Command::kOpenChannel;
  const Occurrence occurrence{.where = Where::kVerb,
                              .flow = {Flow::Kind::kChannel, 0, opens ? 0 : command.channel.value},
                              .device = {},
                              .to = {},
                              .kind = verb_kind(command),
                              .owner = command.channel};
  int error = 0;
  for (const auto& one : std::vector(injector.act(occurrence))) {
    injector.note(one, "verb rdma_" + std::string(abi::name_of(command.command)), {}, nullptr);
    if (error == 0) error = one.rule->effects.error;
  }
  return error;
}

}  // namespace rocemu::engine::faults
