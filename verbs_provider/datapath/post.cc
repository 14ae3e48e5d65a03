// ibv_post_send(3) and ibv_post_recv(3).
//
// A work request is copied into its queue's next slot; one doorbell notifies the daemon of all
// requests of a call. Errors that do not depend on the daemon are returned at once: EINVAL for an
// invalid request or QP state, ENOMEM for a full queue.
#include <cerrno>
#include <cstring>

#include "verbs_provider/base/objects.h"
#include "verbs_provider/base/verbs.h"
#include "verbs_provider/context/context.h"
#include "verbs_provider/datapath/auto_inline.h"
#include "verbs_provider/datapath/post_list.h"
#include "verbs_provider/datapath/send_wqe.h"
#include "verbs_provider/structs/qp.h"

namespace rocemu::provider {
namespace {

uint64_t total_length(const ibv_send_wr& wr) {
  uint64_t total = 0;
  for (int i = 0; i < wr.num_sge; ++i) total += wr.sg_list[i].length;
  return total;
}

/// Returns 0, or the errno value with which the request is refused. `window_type` is the type of
/// the windows that can be bound by this call.
int check(const Qp& qp, const ibv_send_wr& wr, ibv_mw_type window_type) {
  const ibv_qp_type type = qp.verbs.qp.qp_type;
  // The program can store any number, but only values of the enumeration may be read as the
  // enumeration.
  uint32_t opcode;
  memcpy(&opcode, &wr.opcode, sizeof opcode);
  if (opcode >= 32 || (opcodes_of(type) & ~kOnlyBuilt & (1u << opcode)) == 0) return EINVAL;
  const abi::PostRules& rules = context_of(qp.verbs.qp.context)->parts.posts;
  if ((qp.refused_opcodes & (1u << opcode)) != 0) [[unlikely]] {
    return rules.opcode_error != 0 ? rules.opcode_error : EINVAL;
  }
  if (!are_valid(wr.send_flags)) return EINVAL;
  if (!is_valid_sge_count(wr.num_sge, qp.send)) return EINVAL;
  if (type == IBV_QPT_UD && wr.wr.ud.ah == nullptr) return EINVAL;
  if (wr.opcode == IBV_WR_BIND_MW &&
      (wr.bind_mw.mw == nullptr || wr.bind_mw.mw->type != window_type ||
       !is_valid(wr.bind_mw.bind_info) || !can_have_base(window_type, wr.bind_mw.bind_info))) {
    return EINVAL;
  }
  if (wr.opcode == IBV_WR_RDMA_READ && rules.max_read_sge != 0 &&
      static_cast<uint32_t>(wr.num_sge) > rules.max_read_sge) [[unlikely]] {
    return EINVAL;
  }
  if ((wr.send_flags & IBV_SEND_INLINE) == 0) return 0;
  if ((bit(wr.opcode) & kInlineable) == 0) return EINVAL;
  if (total_length(wr) <= qp.max_inline_data) return 0;
  return rules.inline_error != 0 ? rules.inline_error : EINVAL;
}

/// Returns the reason why check() or a full queue refused a send.
RefusedRequest why_refused(const Qp& qp, const ibv_send_wr& wr, bool is_ready, int error) {
  RefusedRequest refused{};
  refused.error = error;
  refused.is_state_wrong = !is_ready;
  if (!is_ready || error == 0) return refused;
  if (wr.num_sge >= 0 && !is_valid_sge_count(wr.num_sge, qp.send)) {
    refused.has_too_many_sges = true;
    refused.asked = static_cast<uint64_t>(wr.num_sge);
  } else if ((wr.send_flags & IBV_SEND_INLINE) != 0 && total_length(wr) > qp.max_inline_data) {
    refused.has_too_much_inline = true;
    refused.asked = total_length(wr);
  }
  return refused;
}

/// Copies the data that is at the list's addresses now. Returns its size in bytes.
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

void write_data(Qp& qp, const ibv_send_wr& wr, std::byte* data, abi::SendWqe* wqe) {
  if ((bit(wr.opcode) & kDataless) != 0) return;
  if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
    wqe->inline_size = copy_inline(wr, data);
  } else {
    wqe->num_sge = static_cast<uint32_t>(wr.num_sge);
    copy_sges(wr.sg_list, wqe->num_sge, data);
    if (can_carry(wr.opcode, wr.send_flags)) {
      carry(qp.verbs.qp.context, wr.sg_list, wqe->num_sge, data + wqe->num_sge * sizeof(abi::Sge),
            qp.send, *wqe);
    }
  }
}

void write_send(Qp& qp, const ibv_send_wr& wr, std::byte* slot) {
  const ibv_qp_type type = qp.verbs.qp.qp_type;
  abi::SendWqe wqe{};
  wqe.wr_id = wr.wr_id;
  wqe.opcode = wr.opcode;
  wqe.flags = wr.send_flags;
  if ((bit(wr.opcode) & kWithImmediate) != 0) wqe.imm_data = wr.imm_data;
  if (type == IBV_QPT_UD) {
    wqe.ud.ah = wr.wr.ud.ah->handle;
    wqe.ud.remote_qpn = wr.wr.ud.remote_qpn;
    wqe.ud.remote_qkey = wr.wr.ud.remote_qkey;
  } else if ((bit(wr.opcode) & kAtomics) != 0) {
    wqe.remote_address = wr.wr.atomic.remote_addr;
    wqe.rkey = wr.wr.atomic.rkey;
    wqe.atomic.compare_add = wr.wr.atomic.compare_add;
    wqe.atomic.swap = wr.wr.atomic.swap;
  } else if ((bit(wr.opcode) & kRdma) != 0) {
    wqe.remote_address = wr.wr.rdma.remote_addr;
    wqe.rkey = wr.wr.rdma.rkey;
  } else if (wr.opcode == IBV_WR_BIND_MW) {
    write_bind(*wr.bind_mw.mw, wr.bind_mw.rkey, wr.bind_mw.bind_info, &wqe);
    wr.bind_mw.mw->rkey = wqe.rkey;  // already now, for later requests
  }
  if (type == IBV_QPT_XRC_SEND) wqe.remote_srqn = wr.qp_type.xrc.remote_srqn;
  write_data(qp, wr, slot + sizeof(wqe), &wqe);
  memcpy(slot, &wqe, sizeof(wqe));
}

int post(abi::Op call, ibv_qp* base, ibv_send_wr* list, ibv_send_wr** bad_wr,
         ibv_mw_type window_type) {
  Qp* qp = ours<Qp>(base);
  const bool ready = can_send(qp->state.load(std::memory_order_acquire));
  return post_list(
      &qp->send, Posting{base->context, call, abi::DoorbellKind::kSend, base->qp_num, base}, list,
      bad_wr, [&](const ibv_send_wr& wr) { return ready ? check(*qp, wr, window_type) : EINVAL; },
      [&](const ibv_send_wr& wr, std::byte* slot) { write_send(*qp, wr, slot); },
      [&](const ibv_send_wr& wr, int error) { return why_refused(*qp, wr, ready, error); });
}

bool has_receive_queue(const ibv_qp& qp) {
  return qp.srq == nullptr && qp.qp_type != IBV_QPT_XRC_SEND && qp.qp_type != IBV_QPT_XRC_RECV;
}

}  // namespace

int post_send(ibv_qp* qp, ibv_send_wr* list, ibv_send_wr** bad_wr) {
  return post(abi::Op::kPostSend, qp, list, bad_wr, IBV_MW_TYPE_2);
}

int post_bind(ibv_qp* qp, ibv_send_wr* wr) {
  ibv_send_wr* bad_wr;
  return post(abi::Op::kBindMw, qp, wr, &bad_wr, IBV_MW_TYPE_1);
}

int post_recv(ibv_qp* base, ibv_recv_wr* list, ibv_recv_wr** bad_wr) {
  Qp* qp = ours<Qp>(base);
  const bool ready =
      has_receive_queue(*base) && qp->state.load(std::memory_order_acquire) != abi::QpState::kReset;
  return post_list(
      &qp->recv,
      Posting{base->context, abi::Op::kPostRecv, abi::DoorbellKind::kRecv, base->qp_num, base},
      list, bad_wr,
      [&](const ibv_recv_wr& wr) {
        return ready && is_valid_sge_count(wr.num_sge, qp->recv) ? 0 : EINVAL;
      },
      write_recv,
      [&](const ibv_recv_wr& wr, int error) {
        return provider::why_refused(wr, qp->recv, ready, error);
      });
}

}  // namespace rocemu::provider
