// ibv_create_cq(3), ibv_destroy_cq(3), ibv_poll_cq(3) and ibv_req_notify_cq(3).
#include "verbs_provider/cq.h"

#include <bit>
#include <cerrno>

#include <sched.h>

#include "verbs_provider/context.h"
#include "verbs_provider/events.h"
#include "verbs_provider/objects.h"
#include "verbs_provider/qp.h"
#include "verbs_provider/verbs.h"

namespace rocemu::provider {
namespace {

/// Every so many polls in a row that found nothing, ask whether the daemon is still there.
constexpr uint32_t kEmptyPollsPerCheck = 1000;

constexpr int kPollFailed = -1;

int channel_inode(const ibv_comp_channel& channel, uint64_t* inode) {
  struct stat status;
  if (::syscall(SYS_fstat, channel.fd, &status) != 0) return errno;
  *inode = status.st_ino;
  return 0;
}

/// Gives the slots that the completion frees back to their work queue. False if the completion is
/// not to be seen: of a QP that is gone, or of one before its last RESET.
bool settle(QpTable& qps, const abi::Cqe& cqe, uint64_t index) {
  Qp* qp = qps.find(cqe.qp_num);
  if (qp == nullptr) return false;
  if (qp->generation.load(std::memory_order_relaxed) != cqe.qp_generation) return false;
  WorkQueue& queue = cqe.queue == abi::WorkQueue::kSend ? qp->send : qp->recv;
  if (index < queue.first_completion) return false;
  queue.released.store(cqe.wqe_count, std::memory_order_release);
  return true;
}

void convert(const abi::Cqe& from, ibv_wc* to) {
  to->wr_id = from.wr_id;
  to->status = static_cast<ibv_wc_status>(from.status);
  to->opcode = static_cast<ibv_wc_opcode>(from.opcode);
  to->vendor_err = from.vendor_err;
  to->byte_len = from.byte_len;
  to->imm_data = from.imm_data;
  to->qp_num = from.qp_num;
  to->src_qp = from.src_qp;
  to->wc_flags = from.wc_flags;
  to->pkey_index = from.pkey_index;
  to->slid = from.slid;
  to->sl = from.sl;
  to->dlid_path_bits = from.dlid_path_bits;
}

/// Nothing came. The daemon may need this processor to make something come.
int wait_a_moment(DoorbellWriter& doorbells, uint32_t empty_polls) {
  sched_yield();
  if (empty_polls % kEmptyPollsPerCheck != 0) return 0;
  return doorbells.is_daemon_gone() ? kPollFailed : 0;
}

/// The daemon gets the channels, to take back the CQ's events that nobody has read yet.
int call_destroy_cq(ibv_context* context, uint32_t handle, const ibv_comp_channel* channel,
                    abi::Reply* reply) {
  int fds[2];
  int count = 0;
  if (channel != nullptr) fds[count++] = channel->fd;
  fds[count++] = context->async_fd;
  return call_object(context, abi::Op::kDestroyCq, handle, reply, fds, count);
}

int open_ring(Cq* cq, uint32_t capacity) {
  if (capacity == 0 || capacity > (1u << 31)) return EIO;
  const uint64_t entries = std::bit_ceil(capacity);
  if (cq->memory.size() < sizeof(abi::CqRing) + entries * sizeof(abi::Cqe)) return EIO;
  cq->ring = reinterpret_cast<abi::CqRing*>(cq->memory.at(0));
  cq->ring_mask = static_cast<uint32_t>(entries - 1);
  return 0;
}

}  // namespace

ibv_cq* create_cq(ibv_context* context, int capacity, ibv_comp_channel* channel, int comp_vector) {
  if (capacity < 1 || comp_vector < 0 || comp_vector >= context->num_comp_vectors) {
    return fail<ibv_cq>(EINVAL);
  }
  auto* cq = make<Cq>();
  if (cq == nullptr) return nullptr;
  ibv_cq& base = cq->verbs.cq;
  abi::Request request{};
  request.op = abi::Op::kCreateCq;
  request.body.create_cq.user_handle = reinterpret_cast<uint64_t>(&base);
  request.body.create_cq.capacity = static_cast<uint32_t>(capacity);
  request.body.create_cq.comp_vector = static_cast<uint32_t>(comp_vector);
  int error =
      channel == nullptr ? 0 : channel_inode(*channel, &request.body.create_cq.channel_inode);
  abi::Reply reply{};
  const auto& created = reply.body.create_cq;
  if (error == 0) {
    error = call_for_memory(context, request, &reply, created.memory_size, &cq->memory);
  }
  if (error == 0) error = open_ring(cq, created.capacity);
  if (error == 0) {
    base.handle = created.handle;
    base.cqe = static_cast<int>(created.capacity);
    return &base;
  }
  if (is_success(reply)) {
    abi::Reply ignored;
    call_destroy_cq(context, created.handle, channel, &ignored);
  }
  dispose(cq);
  return fail<ibv_cq>(error);
}

int destroy_cq(ibv_cq* base) {
  abi::Reply reply;
  const int error = call_destroy_cq(base->context, base->handle, base->channel, &reply);
  if (error != 0) return error;
  wait_until(&base->mutex, &base->cond, [&] {
    return base->comp_events_completed == reply.body.destroyed.completion_events &&
           base->async_events_completed == reply.body.destroyed.async_events;
  });
  dispose(ours<Cq>(base));
  return 0;
}

int poll_cq(ibv_cq* base, int num_entries, ibv_wc* wc) {
  Cq* cq = ours<Cq>(base);
  Context::Parts& parts = context_of(base->context)->parts;
  int taken = 0;
  uint32_t empty_polls;
  {
    const Guard guard(cq->lock);
    if (cq->ring->error.load(std::memory_order_acquire) != 0) return kPollFailed;
    const uint64_t first = cq->consumed;
    const uint64_t produced = cq->produced();
    while (taken < num_entries && cq->consumed != produced) {
      const abi::Cqe cqe = cq->ring->entries[cq->consumed & cq->ring_mask];
      if (settle(parts.qps, cqe, cq->consumed)) convert(cqe, &wc[taken++]);
      ++cq->consumed;
    }
    if (cq->consumed != first) {
      cq->ring->consumer.store(static_cast<uint32_t>(cq->consumed), std::memory_order_release);
      cq->empty_polls = 0;
      return taken;
    }
    empty_polls = ++cq->empty_polls;
  }
  return wait_a_moment(parts.doorbells, empty_polls);
}

int req_notify_cq(ibv_cq* base, int solicited_only) {
  // A CQ that overran cannot be used: there will never be the completion to notify of.
  if (ours<Cq>(base)->ring->error.load(std::memory_order_acquire) != 0) return EIO;
  // What the application could have polled by now gives no event (rings.h).
  const uint64_t seen = ours<Cq>(base)->ring->producer.load(std::memory_order_acquire);
  return context_of(base->context)
      ->parts.doorbells.ring(abi::DoorbellKind::kCqArm, base->handle,
                             seen | (solicited_only != 0 ? abi::kCqArmSolicited : 0));
}

}  // namespace rocemu::provider
