// ibv_create_qp(3), ibv_modify_qp(3), ibv_query_qp(3) and ibv_destroy_qp(3).
#include "verbs_provider/qp.h"

#include <bit>
#include <cerrno>

#include "verbs_provider/context.h"
#include "verbs_provider/events.h"
#include "verbs_provider/objects.h"
#include "verbs_provider/qp_attributes.h"
#include "verbs_provider/qp_ex.h"
#include "verbs_provider/verbs.h"

namespace rocemu::provider {
namespace {

QpTable& table_of(const ibv_qp& qp) {
  return context_of(qp.context)->parts.qps;
}

int open_queue(const SharedMemory& memory, const abi::WorkQueueLayout& layout, uint32_t max_wr,
               uint32_t max_sge, uint32_t min_stride, WorkQueue* queue) {
  if (layout.slots == 0) return max_wr == 0 ? 0 : EIO;
  if (!std::has_single_bit(layout.slots) || layout.slots < max_wr || layout.stride < min_stride) {
    return EIO;
  }
  const uint64_t bytes = uint64_t{layout.slots} * layout.stride;
  if (bytes > memory.size() || layout.offset > memory.size() - bytes) return EIO;
  queue->slots = memory.at(layout.offset);
  queue->slot_mask = layout.slots - 1;
  queue->stride = layout.stride;
  queue->max_wr = max_wr;
  queue->max_sge = max_sge;
  return 0;
}

int open_queues(Qp* qp, const abi::Reply& reply) {
  const auto& created = reply.body.create_qp;
  const abi::QpCap& cap = created.cap;
  qp->max_inline_data = cap.max_inline_data;
  int error = open_queue(qp->memory, created.send, cap.max_send_wr, cap.max_send_sge,
                         abi::send_stride(cap.max_send_sge, cap.max_inline_data), &qp->send);
  if (error == 0) {
    error = open_queue(qp->memory, created.recv, cap.max_recv_wr, cap.max_recv_sge,
                       abi::recv_stride(cap.max_recv_sge), &qp->recv);
  }
  return error;
}

/// Makes the QP known to poll_cq.
int enter(Qp* qp, uint32_t generation) {
  const BothCqs guard(qp->send_cq(), qp->recv_cq());
  qp->send.first_completion = qp->send_cq()->produced();
  qp->recv.first_completion = qp->recv_cq()->produced();
  qp->generation.store(generation, std::memory_order_relaxed);
  return table_of(qp->verbs.qp).insert(qp->verbs.qp.qp_num, qp) ? 0 : ENOMEM;
}

/// A RESET forgot all that was posted, and the completions that were not polled.
void begin_generation(Qp* qp, uint32_t generation) {
  const Guard send_guard(qp->send.lock);
  const Guard recv_guard(qp->recv.lock);
  const BothCqs guard(qp->send_cq(), qp->recv_cq());
  qp->generation.store(generation, std::memory_order_relaxed);
  for (WorkQueue* queue : {&qp->send, &qp->recv}) {
    queue->released.store(static_cast<uint32_t>(queue->posted), std::memory_order_release);
  }
}

/// libibverbs leaves all of these to the provider.
void fill(ibv_qp* qp, ibv_pd* pd, const ibv_qp_init_attr& attr, uint32_t number) {
  qp->context = pd->context;
  qp->qp_context = attr.qp_context;
  qp->pd = pd;
  qp->send_cq = attr.send_cq;
  qp->recv_cq = attr.recv_cq;
  qp->srq = attr.srq;
  qp->handle = number;
  qp->qp_num = number;
  qp->state = IBV_QPS_RESET;
  qp->qp_type = attr.qp_type;
  qp->events_completed = 0;
  pthread_mutex_init(&qp->mutex, nullptr);
  pthread_cond_init(&qp->cond, nullptr);
}

void dispose_qp(Qp* qp) {
  pthread_cond_destroy(&qp->verbs.qp.cond);
  pthread_mutex_destroy(&qp->verbs.qp.mutex);
  dispose(qp);
}

/// The daemon gets the async event channel, to take back the QP's events that nobody has read yet.
int call_destroy_qp(ibv_context* context, uint32_t number, abi::Reply* reply) {
  return call_object(context, abi::Op::kDestroyQp, number, reply, &context->async_fd, 1);
}

bool is_supported(ibv_qp_type type) {
  return type == IBV_QPT_RC || type == IBV_QPT_UC || type == IBV_QPT_UD;
}

}  // namespace

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  if (!is_supported(attr->qp_type)) return fail<ibv_qp>(EOPNOTSUPP);
  if (attr->send_cq == nullptr || attr->recv_cq == nullptr) return fail<ibv_qp>(EINVAL);
  auto* qp = make<Qp>();
  if (qp == nullptr) return nullptr;
  abi::Request request{};
  request.op = abi::Op::kCreateQp;
  auto& wanted = request.body.create_qp;
  wanted.user_handle = reinterpret_cast<uint64_t>(&qp->verbs.qp);
  wanted.pd = pd->handle;
  wanted.send_cq = attr->send_cq->handle;
  wanted.recv_cq = attr->recv_cq->handle;
  wanted.srq = attr->srq != nullptr ? attr->srq->handle : 0;
  wanted.type = static_cast<abi::QpType>(attr->qp_type);
  wanted.sq_sig_all = attr->sq_sig_all != 0;
  wanted.cap = to_abi(attr->cap);
  abi::Reply reply{};
  const auto& created = reply.body.create_qp;
  int error = call_for_memory(pd->context, request, &reply, created.memory_size, &qp->memory);
  fill(&qp->verbs.qp, pd, *attr, created.qpn);
  if (error == 0) error = open_queues(qp, reply);
  if (error == 0) error = enter(qp, created.generation);
  if (error == 0) {
    attr->cap = from_abi(created.cap);
    return &qp->verbs.qp;
  }
  if (is_success(reply)) {
    abi::Reply ignored;
    call_destroy_qp(pd->context, created.qpn, &ignored);
  }
  dispose_qp(qp);
  return fail<ibv_qp>(error);
}

ibv_qp* create_qp_ex(ibv_context*, ibv_qp_init_attr_ex* attr) {
  constexpr uint32_t kUnderstood = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  if ((attr->comp_mask & ~kUnderstood) != 0) return fail<ibv_qp>(EOPNOTSUPP);
  if ((attr->comp_mask & IBV_QP_INIT_ATTR_PD) == 0) return fail<ibv_qp>(EINVAL);
  const bool with_builder = (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  if (with_builder && !offers(attr->qp_type, attr->send_ops_flags)) {
    return fail<ibv_qp>(EOPNOTSUPP);
  }
  ibv_qp_init_attr basic{};
  basic.qp_context = attr->qp_context;
  basic.send_cq = attr->send_cq;
  basic.recv_cq = attr->recv_cq;
  basic.srq = attr->srq;
  basic.cap = attr->cap;
  basic.qp_type = attr->qp_type;
  basic.sq_sig_all = attr->sq_sig_all;
  ibv_qp* qp = create_qp(attr->pd, &basic);
  if (qp == nullptr) return nullptr;
  attr->cap = basic.cap;
  if (with_builder) install_work_request_builder(ours<Qp>(qp));
  return qp;
}

int modify_qp(ibv_qp* base, ibv_qp_attr* attr, int mask) {
  Qp* qp = ours<Qp>(base);
  abi::Request request{};
  request.op = abi::Op::kModifyQp;
  request.body.modify_qp.qpn = base->qp_num;
  request.body.modify_qp.mask = static_cast<uint32_t>(mask);
  request.body.modify_qp.attr = to_abi(*attr, mask);
  abi::Reply reply;
  if (const int error = call(base->context, request, &reply); error != 0) return error;
  const auto& modified = reply.body.modify_qp;
  if (modified.generation != qp->generation.load(std::memory_order_relaxed)) {
    begin_generation(qp, modified.generation);
  }
  qp->state.store(static_cast<abi::QpState>(modified.state), std::memory_order_release);
  return 0;
}

int query_qp(ibv_qp* base, ibv_qp_attr* attr, int, ibv_qp_init_attr* init_attr) {
  abi::Reply reply;
  const int error = call_object(base->context, abi::Op::kQueryQp, base->qp_num, &reply);
  if (error != 0) return error;
  from_abi(reply.body.query_qp.attr, attr);
  init_attr->qp_context = base->qp_context;
  init_attr->send_cq = base->send_cq;
  init_attr->recv_cq = base->recv_cq;
  init_attr->srq = base->srq;
  init_attr->cap = attr->cap;
  init_attr->qp_type = base->qp_type;
  init_attr->sq_sig_all = static_cast<int>(reply.body.query_qp.sq_sig_all);
  return 0;
}

int destroy_qp(ibv_qp* base) {
  Qp* qp = ours<Qp>(base);
  abi::Reply reply;
  const int error = call_destroy_qp(base->context, base->qp_num, &reply);
  if (error != 0) return error;
  {
    const BothCqs guard(qp->send_cq(), qp->recv_cq());
    table_of(*base).remove(base->qp_num, qp);
  }
  wait_until(&base->mutex, &base->cond,
             [&] { return base->events_completed == reply.body.destroyed.async_events; });
  dispose_qp(qp);
  return 0;
}

}  // namespace rocemu::provider
