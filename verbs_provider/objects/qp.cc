// ibv_create_qp(3), ibv_create_qp_ex(3), ibv_modify_qp(3), ibv_query_qp(3) and ibv_destroy_qp(3).
#include "verbs_provider/structs/qp.h"

#include <algorithm>
#include <cerrno>

#include "verbs_provider/base/objects.h"
#include "verbs_provider/base/undefined_values.h"
#include "verbs_provider/base/verbs.h"
#include "verbs_provider/context/context.h"
#include "verbs_provider/context/events.h"
#include "verbs_provider/datapath/auto_inline.h"
#include "verbs_provider/objects/make_qp.h"
#include "verbs_provider/objects/qp_attributes.h"
#include "verbs_provider/objects/qp_ex.h"
#include "verbs_provider/shim/call.h"
#include "verbs_provider/structs/pd.h"
#include "verbs_provider/structs/srq.h"

namespace rocemu::provider {
namespace {

NumberTable<Qp>& table_of(const ibv_qp& qp) {
  return context_of(qp.context)->parts.qps;
}

int open_queues(Qp* qp, const SharedPiece& memory, const abi::Reply& reply) {
  const auto& created = reply.body.create_qp;
  const abi::QpCap& cap = created.cap;
  qp->max_inline_data = cap.max_inline_data;
  int error = open_queue(memory, created.send, cap.max_send_wr, cap.max_send_sge,
                         abi::send_stride(cap.max_send_sge, cap.max_inline_data), &qp->send);
  if (error == 0 && cap.max_send_wr != 0) qp->send.make_room_for_send_slots();
  if (error == 0) {
    error = open_queue(memory, created.recv, cap.max_recv_wr, cap.max_recv_sge,
                       abi::recv_stride(cap.max_recv_sge), &qp->recv);
  }
  const abi::PostRules& rules = context_of(qp->verbs.qp.context)->parts.posts;
  qp->refused_opcodes = rules.refused_opcodes;
  if (rules.most_posted != 0) {
    for (WorkQueue* queue : {&qp->send, &qp->recv})
      queue->max_wr = std::min(queue->max_wr, rules.most_posted);
  }
  return error;
}

/// Makes the QP known to poll_cq. An XRC target QP has no completions: they belong to an SRQ.
int enter(Qp* qp, uint32_t generation) {
  if (qp->verbs.qp.qp_type == IBV_QPT_XRC_RECV) return 0;
  const BothCqs guard(qp->send_cq(), qp->recv_cq());
  qp->send.first_completion = qp->send_cq()->produced();
  if (qp->recv_cq() != nullptr) qp->recv.first_completion = qp->recv_cq()->produced();
  qp->generation.store(generation, std::memory_order_relaxed);
  return table_of(qp->verbs.qp).insert(qp->verbs.qp.qp_num, qp) ? 0 : ENOMEM;
}

/// Releases the SendSlots of all posted sends of the QP. Called when the QP discards them.
void forget_messages(Qp* qp) {
  release_slots(context_of(qp->verbs.qp.context)->parts, qp->send,
                qp->send.released.load(std::memory_order_relaxed),
                static_cast<uint32_t>(qp->send.posted));
}

/// Begins a generation after a RESET, which discards all posted requests and the completions that
/// were not polled.
void begin_generation(Qp* qp, uint32_t generation) {
  const Guard send_guard(qp->send.lock);
  const Guard recv_guard(qp->recv.lock);
  const BothCqs guard(qp->send_cq(), qp->recv_cq());
  qp->generation.store(generation, std::memory_order_relaxed);
  forget_messages(qp);
  for (WorkQueue* queue : {&qp->send, &qp->recv}) {
    queue->released.store(static_cast<uint32_t>(queue->posted), std::memory_order_release);
  }
}

/// Stores the state that the device reported; the QP may have left the state that the application
/// chose.
void set_state(Qp* qp, uint32_t state) {
  qp->state.store(static_cast<abi::QpState>(state), std::memory_order_release);
  qp->verbs.qp.state = static_cast<ibv_qp_state>(state);
}

/// Destroys the QP. The request has the async event channel, from which the daemon removes the QP's
/// unread events, and the handle that distinguishes several references to one QP.
int call_destroy_qp(const Qp& qp, abi::Reply* reply) {
  const ibv_qp& base = qp.verbs.qp;
  abi::Request request{};
  request.op = abi::Op::kDestroyQp;
  request.body.object.handle = base.handle;
  request.body.object.user_handle = reinterpret_cast<uint64_t>(&base);
  return note_answer(
      rocemu_call(base.context->cmd_fd, &request, reply, &base.context->async_fd, 1, nullptr, 0));
}

/// Checks whether a QP of that type can exist with these objects. Returns 0 or a positive errno
/// value.
int check(const ibv_qp_init_attr_ex& attr) {
  const auto has = [&attr](uint32_t bit, const void* value) {
    return (attr.comp_mask & bit) != 0 && value != nullptr;
  };
  const bool has_pd = has(IBV_QP_INIT_ATTR_PD, attr.pd);
  switch (attr.qp_type) {
    case IBV_QPT_RC:
    case IBV_QPT_UD:
      // Messages for an XRC SRQ arrive only on XRC QPs.
      if (attr.srq != nullptr && ours<Srq>(attr.srq)->is_xrc()) return EINVAL;
      return has_pd && attr.send_cq != nullptr && attr.recv_cq != nullptr ? 0 : EINVAL;
    case IBV_QPT_UC:
      // ibv_create_qp(3): "will fail if it is asked to create QP of a type other than IBV_QPT_RC or
      // IBV_QPT_UD associated with an SRQ"
      if (attr.srq != nullptr) return EINVAL;
      return has_pd && attr.send_cq != nullptr && attr.recv_cq != nullptr ? 0 : EINVAL;
    case IBV_QPT_XRC_SEND:
      return has_pd && attr.send_cq != nullptr && attr.srq == nullptr ? 0 : EINVAL;
    case IBV_QPT_XRC_RECV:
      return has(IBV_QP_INIT_ATTR_XRCD, attr.xrcd) && attr.srq == nullptr ? 0 : EINVAL;
    case IBV_QPT_RAW_PACKET:
    case IBV_QPT_DRIVER:
      return EOPNOTSUPP;
    default:
      return EINVAL;
  }
}

/// Returns the attributes without those that a QP of this type ignores, as with other devices. An
/// XRC_SEND QP receives nothing, and an XRC_RECV QP has no queue at all: its messages go into XRC
/// SRQs, which have the CQs and PDs.
ibv_qp_init_attr_ex without_the_irrelevant(ibv_qp_init_attr_ex attr) {
  // ibv_create_qp(3): "The attributes max_recv_wr and max_recv_sge are ignored ... if the QP is to
  // be associated with an SRQ."
  const bool receives = attr.srq == nullptr && attr.qp_type != IBV_QPT_XRC_SEND;
  if (!receives) attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
  if (attr.qp_type == IBV_QPT_XRC_SEND) attr.recv_cq = nullptr;
  if (attr.qp_type == IBV_QPT_XRC_RECV) {
    attr.pd = nullptr;
    attr.send_cq = attr.recv_cq = nullptr;
    attr.cap = {};
  } else {
    attr.xrcd = nullptr;
  }
  return attr;
}

/// Increases max_inline_data to the size of the SGEs: inline data uses their space, so there is
/// always space for some. NICs and rxe also report it in max_inline_data, and rdma_xclient sends
/// inline without having requested any.
void offer_sge_room_for_inline_data(ibv_qp_cap* cap) {
  constexpr auto kSgeSize = static_cast<uint32_t>(sizeof(abi::Sge));
  cap->max_inline_data = std::max(cap->max_inline_data, cap->max_send_sge * kSgeSize);
}

abi::Request to_request(const Qp& qp, const ibv_qp_init_attr_ex& attr) {
  abi::Request request{};
  request.op = abi::Op::kCreateQp;
  auto& wanted = request.body.create_qp;
  wanted.user_handle = reinterpret_cast<uint64_t>(&qp.verbs.qp);
  if (attr.pd != nullptr) wanted.pd = attr.pd->handle;
  if (attr.send_cq != nullptr) wanted.send_cq = attr.send_cq->handle;
  if (attr.recv_cq != nullptr) wanted.recv_cq = attr.recv_cq->handle;
  if (attr.srq != nullptr) wanted.srq = attr.srq->handle;
  if (attr.xrcd != nullptr) wanted.xrcd = ours<Xrcd>(attr.xrcd)->handle;
  wanted.type = static_cast<abi::QpType>(attr.qp_type);
  wanted.sq_sig_all = attr.sq_sig_all != 0;
  wanted.cap = to_abi(attr.cap);
  return request;
}

Qp* create(ibv_context* context, const ibv_qp_init_attr_ex& attr, ibv_qp_cap* cap) {
  const int errno_before = errno;
  auto* qp = make_in<Qp>(attr.pd, Resource::kQp);
  if (qp == nullptr) return nullptr;
  fill(qp, context, attr);
  abi::Reply reply{};
  const auto& created = reply.body.create_qp;
  const abi::Request request = to_request(*qp, attr);
  const bool has_queues = attr.qp_type != IBV_QPT_XRC_RECV;
  SharedPiece memory;
  int error = has_queues ? call_for_memory(context, request, &reply, created.memory, &memory)
                         : call(context, request, &reply);
  qp->verbs.qp.handle = qp->verbs.qp.qp_num = created.qpn;
  if (error == 0 && has_queues) error = open_queues(qp, memory, reply);
  if (error == 0) error = enter(qp, created.generation);
  if (error == 0) {
    *cap = from_abi(created.cap);
    return qp;
  }
  if (is_success(reply)) {
    abi::Reply ignored;
    call_destroy_qp(*qp, &ignored);
  }
  dispose_qp(qp);
  if (error == abi::kErrnoUntouched) {
    errno = errno_before;
    return nullptr;
  }
  return fail<Qp>(error);
}

}  // namespace

void fill(Qp* qp, ibv_context* context, const ibv_qp_init_attr_ex& attr) {
  qp->xrcd = ours<Xrcd>(attr.xrcd);
  hold(qp->xrcd);
  ibv_qp& base = qp->verbs.qp;
  base.context = context;
  base.qp_context = attr.qp_context;
  base.pd = attr.pd;
  hold(attr.pd);
  base.send_cq = attr.send_cq;
  base.recv_cq = attr.recv_cq;
  base.srq = attr.srq;
  base.state = IBV_QPS_RESET;
  base.qp_type = attr.qp_type;
  base.events_completed = 0;
  pthread_mutex_init(&base.mutex, nullptr);
  pthread_cond_init(&base.cond, nullptr);
}

void dispose_qp(Qp* qp) {
  pthread_cond_destroy(&qp->verbs.qp.cond);
  pthread_mutex_destroy(&qp->verbs.qp.mutex);
  ibv_pd* pd = qp->verbs.qp.qp_type == IBV_QPT_XRC_RECV ? nullptr : qp->verbs.qp.pd;
  Xrcd* xrcd = qp->xrcd;
  dispose_in(qp, Resource::kQp);
  release(pd);
  release(xrcd);
}

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* basic) {
  ibv_qp_init_attr_ex attr{};
  attr.qp_context = basic->qp_context;
  attr.send_cq = basic->send_cq;
  attr.recv_cq = basic->recv_cq;
  attr.srq = basic->srq;
  attr.cap = basic->cap;
  attr.qp_type = basic->qp_type;
  attr.sq_sig_all = basic->sq_sig_all;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  attr.pd = pd;
  ibv_qp* qp = create_qp_ex(pd->context, &attr);
  if (qp != nullptr) basic->cap = attr.cap;
  return qp;
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  // TSO, receive-side scaling and the creation flags are not supported: they belong to Ethernet.
  constexpr uint32_t kUnderstood = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
                                   IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  if ((attr->comp_mask & ~kUnderstood) != 0) return fail<ibv_qp>(EOPNOTSUPP);
  if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && attr->create_flags != 0) {
    return fail<ibv_qp>(EOPNOTSUPP);
  }
  if (const int error = check(*attr); error != 0) return fail<ibv_qp>(error);
  const bool with_builder = (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  const abi::PostRules& rules = context_of(context)->parts.posts;
  if (with_builder && !offers(attr->qp_type, attr->send_ops_flags, rules.refused_opcodes)) {
    return fail<ibv_qp>(EOPNOTSUPP);
  }
  ibv_qp_init_attr_ex wanted = without_the_irrelevant(*attr);
  if (with_builder) make_room_for(attr->send_ops_flags, &wanted.cap);
  if (rules.no_inline_room == 0) offer_sge_room_for_inline_data(&wanted.cap);
  Qp* qp = create(context, wanted, &attr->cap);
  if (qp == nullptr) return nullptr;
  // The QP does not belong to the PD, but names it, as with other devices: librdmacm takes the PD
  // for an XRC SRQ from the QP.
  const bool names_pd = (attr->comp_mask & IBV_QP_INIT_ATTR_PD) != 0;
  if (attr->qp_type == IBV_QPT_XRC_RECV && names_pd) qp->verbs.qp.pd = attr->pd;
  if (with_builder) install_work_request_builder(qp, attr->send_ops_flags);
  return &qp->verbs.qp;
}

int modify_qp(ibv_qp* base, ibv_qp_attr* attr, int mask) {
  Qp* qp = ours<Qp>(base);
  abi::Request request{};
  request.op = abi::Op::kModifyQp;
  request.body.modify_qp.qpn = base->handle;
  request.body.modify_qp.mask = static_cast<uint32_t>(mask);
  request.body.modify_qp.attr = to_abi(*attr, mask);
  abi::Reply reply;
  if (const int error = call(base->context, request, &reply); error != 0) return error;
  const auto& modified = reply.body.modify_qp;
  if (modified.generation != qp->generation.load(std::memory_order_relaxed)) {
    begin_generation(qp, modified.generation);
  }
  set_state(qp, modified.state);
  return 0;
}

int query_qp(ibv_qp* base, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init_attr) {
  abi::Reply reply;
  const int error = call_object(base->context, abi::Op::kQueryQp, base->handle, &reply);
  if (error != 0) return error;
  from_abi(reply.body.query_qp.attr, attr);
  set_state(ours<Qp>(base), reply.body.query_qp.attr.qp_state);
  *init_attr = {};
  init_attr->qp_context = base->qp_context;
  init_attr->send_cq = base->send_cq;
  init_attr->recv_cq = base->recv_cq;
  init_attr->srq = base->srq;
  init_attr->cap = attr->cap;
  init_attr->qp_type = base->qp_type;
  init_attr->sq_sig_all = static_cast<int>(reply.body.query_qp.sq_sig_all);
  if (fills_undefined()) fill_unrequested(mask, attr);
  return 0;
}

int destroy_qp(ibv_qp* base) {
  Qp* qp = ours<Qp>(base);
  abi::Reply reply;
  const int error = call_destroy_qp(*qp, &reply);
  if (error != 0 && !is_gone_with_its_device(error)) return error;
  {
    const BothCqs guard(qp->send_cq(), qp->recv_cq());
    table_of(*base).remove(base->qp_num, qp);
    forget_messages(qp);
  }
  if (error == 0) {
    wait_for_acknowledgements(
        &base->mutex, &base->cond, "ibv_destroy_qp", "QP", base->qp_num, base, [&] {
          return Unacknowledged{
              0, still_unacknowledged(reply.body.destroyed.async_events, base->events_completed)};
        });
  }
  dispose_qp(qp);
  return 0;
}

}  // namespace rocemu::provider
