// ibv_post_send(3) and ibv_post_recv(3).
//
// A work request is copied into its queue's next slot; one doorbell tells the daemon of all that a
// call posted. What can be said without the daemon is said at once: EINVAL for a request or a QP
// state that cannot be, ENOMEM for a full queue.
#include <cerrno>
#include <cstring>

#include "verbs_provider/context.h"
#include "verbs_provider/objects.h"
#include "verbs_provider/qp.h"
#include "verbs_provider/send_wqe.h"
#include "verbs_provider/verbs.h"

namespace rocemu::provider {
namespace {

static_assert(sizeof(ibv_sge) == sizeof(abi::Sge));
static_assert(offsetof(ibv_sge, addr) == offsetof(abi::Sge, address));
static_assert(offsetof(ibv_sge, length) == offsetof(abi::Sge, length));
static_assert(offsetof(ibv_sge, lkey) == offsetof(abi::Sge, lkey));

uint64_t total_length(const ibv_send_wr& wr) {
  uint64_t total = 0;
  for (int i = 0; i < wr.num_sge; ++i) total += wr.sg_list[i].length;
  return total;
}

bool is_valid(int num_sge, uint32_t max_sge) {
  return num_sge >= 0 && static_cast<uint32_t>(num_sge) <= max_sge;
}

int check(const Qp& qp, const ibv_send_wr& wr) {
  const ibv_qp_type type = qp.verbs.qp.qp_type;
  if (static_cast<uint32_t>(wr.opcode) >= 32) return EINVAL;
  if ((opcodes_of(type) & bit(wr.opcode)) == 0) return EINVAL;
  if (!is_valid(wr.num_sge, qp.send.max_sge)) return EINVAL;
  if (type == IBV_QPT_UD && wr.wr.ud.ah == nullptr) return EINVAL;
  if ((wr.send_flags & IBV_SEND_INLINE) != 0 &&
      ((bit(wr.opcode) & kInlineable) == 0 || total_length(wr) > qp.max_inline_data)) {
    return EINVAL;
  }
  return 0;
}

/// Copies what lies at the list's addresses, as it is now.
uint32_t copy_inline(const ibv_send_wr& wr, std::byte* to) {
  uint32_t size = 0;
  for (int i = 0; i < wr.num_sge; ++i) {
    const ibv_sge& sge = wr.sg_list[i];
    if (sge.length == 0) continue;
    memcpy(to + size, reinterpret_cast<const void*>(sge.addr), sge.length);
    size += sge.length;
  }
  return size;
}

void copy_sges(const ibv_sge* list, uint32_t count, std::byte* to) {
  if (count != 0) memcpy(to, list, count * sizeof(abi::Sge));
}

void write_send(const Qp& qp, const ibv_send_wr& wr, std::byte* slot) {
  abi::SendWqe wqe{};
  wqe.wr_id = wr.wr_id;
  wqe.opcode = wr.opcode;
  wqe.flags = wr.send_flags;
  wqe.imm_data = wr.imm_data;  // or invalidate_rkey, which shares its place
  if (qp.verbs.qp.qp_type == IBV_QPT_UD) {
    wqe.ud.ah = wr.wr.ud.ah->handle;
    wqe.ud.remote_qpn = wr.wr.ud.remote_qpn;
    wqe.ud.remote_qkey = wr.wr.ud.remote_qkey;
  } else if ((bit(wr.opcode) & kAtomics) != 0) {
    wqe.remote_address = wr.wr.atomic.remote_addr;
    wqe.rkey = wr.wr.atomic.rkey;
    wqe.atomic.compare_add = wr.wr.atomic.compare_add;
    wqe.atomic.swap = wr.wr.atomic.swap;
  } else if ((bit(wr.opcode) & (kWrites | bit(IBV_WR_RDMA_READ))) != 0) {
    wqe.remote_address = wr.wr.rdma.remote_addr;
    wqe.rkey = wr.wr.rdma.rkey;
  }
  std::byte* data = slot + sizeof(wqe);
  if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
    wqe.inline_size = copy_inline(wr, data);
  } else {
    wqe.num_sge = static_cast<uint32_t>(wr.num_sge);
    copy_sges(wr.sg_list, wqe.num_sge, data);
  }
  memcpy(slot, &wqe, sizeof(wqe));
}

void write_recv(const ibv_recv_wr& wr, std::byte* slot) {
  const abi::RecvWqe wqe{wr.wr_id, static_cast<uint32_t>(wr.num_sge), 0};
  memcpy(slot, &wqe, sizeof(wqe));
  copy_sges(wr.sg_list, wqe.num_sge, slot + sizeof(wqe));
}

/// Posts a list up to the first request that `check` refuses or that finds the queue full.
template <class Wr, class Check, class Write>
int post(Qp* qp, WorkQueue* queue, abi::DoorbellKind kind, Wr* list, Wr** bad_wr, Check check_one,
         Write write_one) {
  const Guard guard(queue->lock);
  const uint64_t posted_before = queue->posted;
  Wr* wr = list;
  int error = 0;
  for (; wr != nullptr; wr = wr->next) {
    error = check_one(*wr);
    if (error == 0 && queue->is_full()) error = ENOMEM;
    if (error != 0) break;
    write_one(*wr, queue->next_slot());
    ++queue->posted;
  }
  if (queue->posted != posted_before) {
    const ibv_qp& base = qp->verbs.qp;
    DoorbellWriter& doorbells = context_of(base.context)->parts.doorbells;
    if (doorbells.ring(kind, base.qp_num, queue->posted) != 0) {
      queue->posted = posted_before;
      error = EIO;
      wr = list;
    }
  }
  if (error != 0) *bad_wr = wr;
  return error;
}

}  // namespace

int post_send(ibv_qp* base, ibv_send_wr* list, ibv_send_wr** bad_wr) {
  Qp* qp = ours<Qp>(base);
  const bool ready = can_send(qp->state.load(std::memory_order_acquire));
  return post(
      qp, &qp->send, abi::DoorbellKind::kSend, list, bad_wr,
      [&](const ibv_send_wr& wr) { return ready ? check(*qp, wr) : EINVAL; },
      [&](const ibv_send_wr& wr, std::byte* slot) { write_send(*qp, wr, slot); });
}

int post_recv(ibv_qp* base, ibv_recv_wr* list, ibv_recv_wr** bad_wr) {
  Qp* qp = ours<Qp>(base);
  const bool ready =
      base->srq == nullptr && qp->state.load(std::memory_order_acquire) != abi::QpState::kReset;
  return post(
      qp, &qp->recv, abi::DoorbellKind::kRecv, list, bad_wr,
      [&](const ibv_recv_wr& wr) {
        return ready && is_valid(wr.num_sge, qp->recv.max_sge) ? 0 : EINVAL;
      },
      write_recv);
}

}  // namespace rocemu::provider
