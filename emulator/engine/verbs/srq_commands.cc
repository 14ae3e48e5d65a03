#include "emulator/engine/verbs/srq_commands.h"

#include <cerrno>

#include "emulator/engine/objects/owned.h"

namespace rocemu::engine {

int create_srq(CommandContext& context, ClientId client, const abi::Request::Body& in,
               abi::Reply::Body& out) {
  const auto& arguments = in.create_srq;
  ProtectionDomain* pd = shared(context.objects.clients, context.objects.pds, arguments.pd, client);
  if (pd == nullptr) return ENOENT;
  XrcDomain* xrcd = nullptr;
  CompletionQueue* cq = nullptr;
  switch (arguments.type) {
    case abi::SrqType::kBasic:
      break;
    case abi::SrqType::kXrc:
      xrcd = context.objects.xrcds.find(XrcdId{arguments.xrcd});
      cq = owned(context.objects.cqs, arguments.cq, client);
      if (xrcd == nullptr || !xrcd->opened_by(client) || cq == nullptr) return ENOENT;
      break;
    default:
      return EOPNOTSUPP;
  }
  if (arguments.max_wr == 0 || arguments.max_wr > kMaxSrqWr || arguments.max_sge > kMaxSge) {
    return EINVAL;
  }
  SharedReceiveQueue* srq = context.objects.srqs.create(client, pd->id);
  if (srq == nullptr) return ENOMEM;
  srq->type = arguments.type;
  srq->user_handle = arguments.user_handle;
  // ibv_create_srq(3): srq_limit is "irrelevant for ibv_create_srq".
  srq->max_wr = arguments.max_wr;
  srq->max_sge = arguments.max_sge;
  srq->queue.configure(srq->max_wr, abi::recv_stride(srq->max_sge));
  ++pd->users;
  if (xrcd != nullptr) {
    srq->xrcd = xrcd->id;
    srq->cq = cq->id;
    join<&SharedReceiveQueue::of_cq>(cq->srqs, *srq);
    ++xrcd->openers[client].objects;
    ++cq->users;
  }
  out.create_srq.handle = srq->id.value;
  out.create_srq.max_wr = srq->max_wr;
  out.create_srq.max_sge = srq->max_sge;
  return 0;
}

int modify_srq(CommandContext& context, ClientId client, const abi::Request::Body& in) {
  const auto& arguments = in.modify_srq;
  SharedReceiveQueue* srq = owned(context.objects.srqs, arguments.handle, client);
  if (srq == nullptr) return ENOENT;
  if ((arguments.mask & ~uint32_t{abi::kSrqMaxWr | abi::kSrqLimit}) != 0) return EINVAL;
  // ibv_modify_srq(3): "Not all devices support resizing SRQs". This device does not: it has no
  // IBV_DEVICE_SRQ_RESIZE. "If any of the modify attributes is invalid, none ... will be modified."
  if ((arguments.mask & abi::kSrqMaxWr) != 0) return EOPNOTSUPP;
  if ((arguments.mask & abi::kSrqLimit) != 0) {
    if (arguments.limit > srq->max_wr) return EINVAL;
    srq->limit = arguments.limit;
    shared_receive_queue::check_limit(context.transport.faults().events, *srq);
  }
  return 0;
}

int query_srq(CommandContext& context, ClientId client, uint32_t handle, abi::Reply::Body& out) {
  const SharedReceiveQueue* srq = owned(context.objects.srqs, handle, client);
  if (srq == nullptr) return ENOENT;
  out.query_srq.max_wr = srq->max_wr;
  out.query_srq.max_sge = srq->max_sge;
  out.query_srq.limit = srq->limit;
  return 0;
}

int destroy_srq(CommandContext& context, ClientId client, uint32_t handle) {
  SharedReceiveQueue* srq = owned(context.objects.srqs, handle, client);
  if (srq == nullptr) return ENOENT;
  // ibv_destroy_srq(3): "fails if any queue pair is still associated with this SRQ".
  if (srq->users != 0) return EBUSY;
  context.objects.destroy(*srq);
  return 0;
}

}  // namespace rocemu::engine
