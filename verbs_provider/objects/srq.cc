// ibv_create_srq(3), ibv_create_srq_ex(3), ibv_modify_srq(3), ibv_query_srq(3), ibv_destroy_srq(3),
// ibv_get_srq_num(3) and ibv_post_srq_recv(3).
#include "verbs_provider/structs/srq.h"

#include <algorithm>
#include <cerrno>

#include "verbs_provider/base/objects.h"
#include "verbs_provider/base/verbs.h"
#include "verbs_provider/context/context.h"
#include "verbs_provider/context/events.h"
#include "verbs_provider/datapath/post_list.h"
#include "verbs_provider/structs/pd.h"

namespace rocemu::provider {
namespace {

/// Destroys the SRQ. The daemon gets the async event channel, from which it removes the SRQ's
/// unread events.
int call_destroy_srq(ibv_context* context, uint32_t handle, abi::Reply* reply) {
  return call_object(context, abi::Op::kDestroySrq, handle, reply, &context->async_fd, 1);
}

/// Adds the SRQ to the table in which poll_cq finds SRQs.
int enter(ibv_context* context, Srq* srq) {
  if (srq->cq != nullptr) {
    const Guard guard(srq->cq->lock);
    srq->first_completion = srq->cq->produced();
  }
  Context::Parts& parts = context_of(context)->parts;
  const Guard guard(parts.srqs_lock);
  return parts.srqs.insert(srq->base.handle, srq) ? 0 : ENOMEM;
}

void leave(ibv_context* context, Srq* srq) {
  Context::Parts& parts = context_of(context)->parts;
  const Guard guard(parts.srqs_lock);
  parts.srqs.remove(srq->base.handle, srq);
}

/// The parameters of a new SRQ other than its attributes.
struct Wanted {
  ibv_srq_type type;
  ibv_pd* pd;
  ibv_xrcd* xrcd;
  ibv_cq* cq;
};

Srq* create(ibv_context* context, const Wanted& wanted, uint32_t limit, ibv_srq_attr* attr) {
  auto* srq = make_in<Srq>(wanted.pd, Resource::kSrq);
  if (srq == nullptr) return nullptr;
  srq->type = wanted.type;
  abi::Request request{};
  request.op = abi::Op::kCreateSrq;
  auto& arguments = request.body.create_srq;
  arguments.user_handle = reinterpret_cast<uint64_t>(&srq->base);
  arguments.pd = wanted.pd->handle;
  arguments.type = static_cast<abi::SrqType>(wanted.type);
  if (srq->is_xrc()) {
    srq->cq = ours<Cq>(wanted.cq);
    srq->xrcd = ours<Xrcd>(wanted.xrcd);
    arguments.xrcd = srq->xrcd->handle;
    arguments.cq = wanted.cq->handle;
  }
  arguments.max_wr = attr->max_wr;
  arguments.max_sge = attr->max_sge;
  arguments.limit = limit;
  abi::Reply reply{};
  const auto& created = reply.body.create_srq;
  SharedPiece memory;
  int error = call_for_memory(context, request, &reply, created.memory, &memory);
  srq->base.handle = created.handle;
  if (error == 0) {
    error = open_queue(memory, created.recv, created.max_wr, created.max_sge,
                       abi::recv_stride(created.max_sge), &srq->recv);
  }
  if (error == 0) error = enter(context, srq);
  if (error == 0) {
    attr->max_wr = created.max_wr;
    attr->max_sge = created.max_sge;
    hold(wanted.pd);
    hold(srq->xrcd);
    return srq;
  }
  if (is_success(reply)) {
    abi::Reply ignored;
    call_destroy_srq(context, created.handle, &ignored);
  }
  dispose_in(srq, Resource::kSrq);
  return fail<Srq>(error);
}

int query(const ibv_srq& srq, abi::Reply* reply) {
  return call_object(srq.context, abi::Op::kQuerySrq, srq.handle, reply);
}

}  // namespace

/// Creates a basic SRQ; libibverbs fills in its own members. "srq_limit: irrelevant for
/// ibv_create_srq".
ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  Srq* srq = create(pd->context, {IBV_SRQT_BASIC, pd, nullptr, nullptr}, 0, &attr->attr);
  return srq == nullptr ? nullptr : &srq->base;
}

/// Creates an SRQ of any type. libibverbs leaves all members of the SRQ to the provider.
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr) {
  constexpr uint32_t kUnderstood =
      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  if ((attr->comp_mask & ~kUnderstood) != 0) return fail<ibv_srq>(EOPNOTSUPP);
  const auto has = [attr](uint32_t bit, const void* value) {
    return (attr->comp_mask & bit) != 0 && value != nullptr;
  };
  Wanted wanted{IBV_SRQT_BASIC, attr->pd, attr->xrcd, attr->cq};
  if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0) wanted.type = attr->srq_type;
  if (!has(IBV_SRQ_INIT_ATTR_PD, attr->pd)) return fail<ibv_srq>(EINVAL);
  switch (wanted.type) {
    case IBV_SRQT_BASIC:
      break;
    case IBV_SRQT_XRC:
      if (!has(IBV_SRQ_INIT_ATTR_XRCD, attr->xrcd)) return fail<ibv_srq>(EINVAL);
      if (!has(IBV_SRQ_INIT_ATTR_CQ, attr->cq)) return fail<ibv_srq>(EINVAL);
      break;
    case IBV_SRQT_TM:
      return fail<ibv_srq>(EOPNOTSUPP);
    default:
      return fail<ibv_srq>(EINVAL);
  }
  Srq* srq = create(context, wanted, attr->attr.srq_limit, &attr->attr);
  if (srq == nullptr) return nullptr;
  srq->base.context = context;
  srq->base.srq_context = attr->srq_context;
  srq->base.pd = attr->pd;
  pthread_mutex_init(&srq->base.mutex, nullptr);
  pthread_cond_init(&srq->base.cond, nullptr);
  return &srq->base;
}

int modify_srq(ibv_srq* base, ibv_srq_attr* attr, int mask) {
  abi::Request request{};
  request.op = abi::Op::kModifySrq;
  auto& arguments = request.body.modify_srq;
  arguments.handle = base->handle;
  arguments.mask = static_cast<uint32_t>(mask);
  if ((mask & IBV_SRQ_MAX_WR) != 0) arguments.max_wr = attr->max_wr;
  if ((mask & IBV_SRQ_LIMIT) != 0) arguments.limit = attr->srq_limit;
  abi::Reply reply;
  if (const int error = call(base->context, request, &reply); error != 0) return error;
  if ((mask & IBV_SRQ_MAX_WR) == 0) return 0;
  if (const int error = query(*base, &reply); error != 0) return error;
  WorkQueue& queue = ours<Srq>(base)->recv;
  const Guard guard(queue.lock);
  queue.max_wr = std::min(reply.body.query_srq.max_wr, queue.slot_mask + 1);
  return 0;
}

int query_srq(ibv_srq* base, ibv_srq_attr* attr) {
  abi::Reply reply;
  if (const int error = query(*base, &reply); error != 0) return error;
  attr->max_wr = reply.body.query_srq.max_wr;
  attr->max_sge = reply.body.query_srq.max_sge;
  attr->srq_limit = reply.body.query_srq.limit;
  return 0;
}

int destroy_srq(ibv_srq* base) {
  abi::Reply reply;
  const int error = call_destroy_srq(base->context, base->handle, &reply);
  if (error != 0 && !is_gone_with_its_device(error)) return error;
  Srq* srq = ours<Srq>(base);
  leave(base->context, srq);
  if (error == 0) {
    wait_for_acknowledgements(
        &base->mutex, &base->cond, "ibv_destroy_srq", "SRQ", base->handle, base, [&] {
          return Unacknowledged{
              0, still_unacknowledged(reply.body.destroyed.async_events, base->events_completed)};
        });
  }
  pthread_cond_destroy(&base->cond);
  pthread_mutex_destroy(&base->mutex);
  ibv_pd* pd = base->pd;
  Xrcd* xrcd = srq->xrcd;
  dispose_in(srq, Resource::kSrq);
  release(pd);
  release(xrcd);
  return 0;
}

/// Stores the number of an XRC SRQ. ibv_get_srq_num(3): "return srq number associated with the
/// given XRC shared receive queue"
int get_srq_num(ibv_srq* base, uint32_t* number) {
  if (!ours<Srq>(base)->is_xrc()) return EINVAL;
  if (const int error = ask(base->context, abi::Op::kGetSrqNum, base->handle); error != 0) {
    return error;
  }
  *number = base->handle;
  return 0;
}

int post_srq_recv(ibv_srq* base, ibv_recv_wr* list, ibv_recv_wr** bad_wr) {
  WorkQueue* queue = &ours<Srq>(base)->recv;
  return post_list(
      queue,
      Posting{base->context, abi::Op::kPostSrqRecv, abi::DoorbellKind::kSrqRecv, base->handle,
              base},
      list, bad_wr,
      [&](const ibv_recv_wr& wr) { return is_valid_sge_count(wr.num_sge, *queue) ? 0 : EINVAL; },
      write_recv,
      [&](const ibv_recv_wr& wr, int error) { return why_refused(wr, *queue, true, error); });
}

}  // namespace rocemu::provider
