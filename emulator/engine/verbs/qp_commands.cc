#include "emulator/engine/verbs/qp_commands.h"

#include <algorithm>
#include <cerrno>

#include "emulator/engine/objects/owned.h"
#include "emulator/engine/transport/address_vector.h"
#include "emulator/engine/transport/failure.h"
#include "emulator/engine/transport/receive_queue.h"
#include "emulator/engine/transport/response_queue.h"
#include "emulator/engine/transport/send_queue.h"
#include "emulator/engine/verbs/qp_transitions.h"
#include "emulator/engine/verbs/release_qp.h"

namespace rocemu::engine {
namespace {

using abi::QpState;

/// Carries out the consequences of a state change, which was checked and made already.
void enter_state(CommandContext& context, QueuePair& qp, QpState from, QpState to, uint32_t mask) {
  switch (to) {
    case QpState::kReset:
      response_queue::flush_held_ack(context.transport, qp);
      receive_queue::give_back(context.transport, qp);
      context.memory.forget_copies(qp.client, qp.number);
      qp.reset();
      return;
    case QpState::kErr:
      if (from != QpState::kErr) enter_error(context.transport, qp);
      return;
    case QpState::kRtr:
      if (from == QpState::kInit) {
        qp.recv.expected = qp.recv.answered = wire::Psn(qp.attr.rq_psn);
        qp.recv.msn = 0;
        // A datagram can go to any destination, so only the port limits its size.
        if (qp.type == abi::QpType::kUd) {
          qp.attr.path_mtu = static_cast<uint32_t>(context.objects.device_of(qp).config.active_mtu);
        }
      }
      break;
    case QpState::kRts:
      if (from == QpState::kRtr) {
        qp.state = to;
        send_queue::start(context.transport, qp);
      } else if (from == QpState::kSqd || from == QpState::kSqe) {
        qp.state = to;
        send_queue::resume(context.transport, qp);
      }
      break;
    case QpState::kSqd:
      if (from == QpState::kRts) {
        qp.send.drained_reported = false;
        // "Enable SQD.drained async notification" belongs to this transition; it is not a property
        // of the QP.
        if ((mask & abi::kAttrEnSqdAsyncNotify) == 0) qp.attr.en_sqd_async_notify = 0;
      }
      qp.state = to;
      send_queue::check_drained(context.transport, qp);
      break;
    case QpState::kInit:
    case QpState::kSqe:
      break;
  }
  qp.state = to;
}

/// The objects that a QP uses, which depend on its type
struct Parts {
  ProtectionDomain* pd = nullptr;
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* recv_cq = nullptr;
  SharedReceiveQueue* srq = nullptr;
  XrcDomain* xrcd = nullptr;
};

int find_parts(CommandContext& context, ClientId client, const abi::Request::Body& in,
               Parts& parts) {
  const auto& arguments = in.create_qp;
  switch (arguments.type) {
    case abi::QpType::kXrcRecv:
      parts.xrcd = context.objects.xrcds.find(XrcdId{arguments.xrcd});
      return parts.xrcd != nullptr && parts.xrcd->opened_by(client) ? 0 : ENOENT;
    case abi::QpType::kRc:
    case abi::QpType::kUc:
    case abi::QpType::kUd:
      parts.recv_cq = owned(context.objects.cqs, arguments.recv_cq, client);
      if (parts.recv_cq == nullptr) return ENOENT;
      if (arguments.srq != 0) {
        parts.srq = owned(context.objects.srqs, arguments.srq, client);
        if (parts.srq == nullptr) return ENOENT;
        if (parts.srq->type != abi::SrqType::kBasic) return EINVAL;
      }
      break;
    case abi::QpType::kXrcSend:
      break;
    default:
      return EOPNOTSUPP;
  }
  parts.pd = shared(context.objects.clients, context.objects.pds, arguments.pd, client);
  parts.send_cq = owned(context.objects.cqs, arguments.send_cq, client);
  return parts.pd != nullptr && parts.send_cq != nullptr ? 0 : ENOENT;
}

}  // namespace

int create_qp(CommandContext& context, ClientId client, const abi::Request::Body& in,
              abi::Reply::Body& out) {
  const auto& arguments = in.create_qp;
  Parts parts;
  if (const int error = find_parts(context, client, in, parts)) return error;
  abi::QpCap cap = arguments.cap;
  // ibv_create_qp(3): "The attributes max_recv_wr and max_recv_sge are ignored by ibv_create_qp()
  // if the QP is to be associated with an SRQ." Attributes that an XRC QP does not have are
  // ignored, too.
  if (parts.recv_cq == nullptr || parts.srq != nullptr) cap.max_recv_wr = cap.max_recv_sge = 0;
  if (parts.send_cq == nullptr) cap = {};
  if (cap.max_send_wr > kMaxQpWr || cap.max_recv_wr > kMaxQpWr || cap.max_send_sge > kMaxSge ||
      cap.max_recv_sge > kMaxSge || cap.max_inline_data > kMaxInlineData) {
    return EINVAL;
  }
  QueuePair* qp = context.objects.qps.create(client, context.objects.clients.device_of(client));
  if (qp == nullptr) return ENOMEM;
  qp->order = ++context.objects.device_of(*qp).qps_created;
  qp->type = arguments.type;
  qp->user_handle = arguments.user_handle;
  qp->sq_sig_all = arguments.sq_sig_all != 0;
  qp->attr.cap = cap;
  const DeviceProfile& profile = *context.objects.device_of(*qp).config.profile;
  qp->late_failures = profile.sends.late_failures;
  qp->late_vendor_err = profile.sends.late_vendor_err;
  qp->max_message = std::min(profile.port.max_msg_sz, static_cast<uint32_t>(kMaxMessage));
  qp->send.queue.configure(cap.max_send_wr,
                           abi::send_stride(cap.max_send_sge, cap.max_inline_data));
  qp->recv.queue.configure(cap.max_recv_wr, abi::recv_stride(cap.max_recv_sge));
  if (parts.pd != nullptr) {
    qp->pd = parts.pd->id;
    ++parts.pd->users;
  }
  if (parts.send_cq != nullptr) {
    qp->send_cq = parts.send_cq->id;
    join<&QueuePair::of_send_cq>(parts.send_cq->senders, *qp);
    ++parts.send_cq->users;
  }
  if (parts.recv_cq != nullptr) {
    qp->recv_cq = parts.recv_cq->id;
    join<&QueuePair::of_recv_cq>(parts.recv_cq->receivers, *qp);
    ++parts.recv_cq->users;
  }
  if (parts.srq != nullptr) {
    qp->srq = parts.srq->id;
    ++parts.srq->users;
  }
  if (parts.xrcd != nullptr) {
    qp->xrcd = parts.xrcd->id;
    ++parts.xrcd->openers[client].objects;
  }
  out.create_qp.qpn = qp->number.value;
  out.create_qp.generation = qp->generation;
  out.create_qp.cap = cap;
  return 0;
}

int modify_qp(CommandContext& context, ClientId client, const abi::Request::Body& in,
              abi::Reply::Body& out) {
  const auto& arguments = in.modify_qp;
  QueuePair* qp = context.objects.qp_of(client, QpNumber{arguments.qpn});
  if (qp == nullptr) return ENOENT;
  const abi::QpAttr& attr = arguments.attr;
  const uint32_t mask = relevant_attributes(qp->type, arguments.mask);
  const abi::Mtu active_mtu = context.objects.device_of(*qp).config.active_mtu;
  if (const int error = check_attributes(qp->type, qp->state, attr, mask, active_mtu)) {
    return error;
  }
  if ((mask & abi::kAttrAv) != 0) {
    if (const int error = check_address_vector(context.objects.devices, qp->device, attr.ah_attr))
      return error;
  }
  apply_attributes(attr, mask, qp->attr);
  if ((mask & abi::kAttrAv) != 0) {
    qp->path = resolve_path(context.objects, qp->device, qp->attr.ah_attr, qp->number,
                            QpNumber{qp->attr.dest_qp_num});
  }
  if ((mask & abi::kAttrState) != 0) {
    enter_state(context, *qp, qp->state, static_cast<QpState>(attr.qp_state), mask);
  }
  out.modify_qp.state = static_cast<uint32_t>(qp->state);
  out.modify_qp.generation = qp->generation;
  return 0;
}

int query_qp(CommandContext& context, ClientId client, uint32_t handle, abi::Reply::Body& out) {
  const QueuePair* qp = context.objects.qp_of(client, QpNumber{handle});
  if (qp == nullptr) return ENOENT;
  out.query_qp.attr = qp->attr;
  // These are the PSNs of the next new request to send and to receive, as Linux's drivers return
  // them (rxe: rxe_qp_to_attr(); mlx5: next_send_psn, next_rcv_psn). Before RTS and RTR,
  // respectively, they are 0.
  out.query_qp.attr.sq_psn = qp->send.sent_limit.value();
  out.query_qp.attr.rq_psn = qp->recv.expected.value();
  out.query_qp.attr.qp_state = out.query_qp.attr.cur_qp_state = static_cast<uint32_t>(qp->state);
  out.query_qp.attr.sq_draining = qp->state == QpState::kSqd && !send_queue::drained(*qp) ? 1 : 0;
  out.query_qp.sq_sig_all = qp->sq_sig_all ? 1 : 0;
  out.query_qp.type = static_cast<uint32_t>(qp->type);
  return 0;
}

int destroy_qp(CommandContext& context, ClientId client, const abi::Request::Body& in) {
  QueuePair* qp = context.objects.qp_of(client, QpNumber{in.object.handle});
  if (qp == nullptr) return ENOENT;
  // ibv_destroy_qp(3): "fails if the QP is attached to a multicast group".
  if (qp->multicast_groups != 0) return EBUSY;
  release_qp(context, *qp, client, in.object.user_handle);
  return 0;
}

}  // namespace rocemu::engine
