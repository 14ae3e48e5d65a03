#include "verbs_provider/qp_ex.h"

#include <cerrno>
#include <cstring>

#include "verbs_provider/context.h"
#include "verbs_provider/objects.h"
#include "verbs_provider/send_wqe.h"

namespace rocemu::provider {
namespace {

/// VerbsQp::comp_mask: qp_ex is valid.
constexpr uint32_t kVerbsQpEx = 2;

Qp* builder_qp(ibv_qp_ex* qp) {
  return ours<Qp>(&qp->qp_base);
}

/// "Any errors are reported by ibv_wr_complete()": the first one counts.
void fail_session(Qp* qp, int error) {
  if (qp->builder.error == 0) qp->builder.error = error;
  qp->builder.building = false;
}

/// The request that was being built is as the application wants it.
void finish_request(Qp* qp) {
  WorkRequestBuilder& builder = qp->builder;
  if (!builder.building) return;
  memcpy(qp->send.next_slot(), &builder.wqe, sizeof(builder.wqe));
  ++qp->send.posted;
  builder.building = false;
}

/// Begins the next request; nullptr if there can be none.
abi::SendWqe* begin_request(ibv_qp_ex* base, ibv_wr_opcode opcode) {
  Qp* qp = builder_qp(base);
  WorkRequestBuilder& builder = qp->builder;
  finish_request(qp);
  if (builder.error != 0) return nullptr;
  if (!can_send(qp->state.load(std::memory_order_acquire)) ||
      (opcodes_of(base->qp_base.qp_type) & bit(opcode)) == 0) {
    fail_session(qp, EINVAL);
    return nullptr;
  }
  if (qp->send.is_full()) {
    fail_session(qp, ENOMEM);
    return nullptr;
  }
  builder.building = true;
  builder.wqe = abi::SendWqe{};
  builder.wqe.wr_id = base->wr_id;
  builder.wqe.opcode = opcode;
  builder.wqe.flags = base->wr_flags & ~unsigned{IBV_SEND_INLINE};
  return &builder.wqe;
}

void begin_remote(ibv_qp_ex* base, ibv_wr_opcode opcode, uint32_t rkey, uint64_t address,
                  uint32_t imm_data = 0) {
  abi::SendWqe* wqe = begin_request(base, opcode);
  if (wqe == nullptr) return;
  wqe->rkey = rkey;
  wqe->remote_address = address;
  wqe->imm_data = imm_data;
}

// ---- Operations ----

void wr_send(ibv_qp_ex* base) {
  begin_request(base, IBV_WR_SEND);
}

void wr_send_imm(ibv_qp_ex* base, __be32 imm_data) {
  if (abi::SendWqe* wqe = begin_request(base, IBV_WR_SEND_WITH_IMM)) wqe->imm_data = imm_data;
}

void wr_send_inv(ibv_qp_ex* base, uint32_t rkey) {
  if (abi::SendWqe* wqe = begin_request(base, IBV_WR_SEND_WITH_INV)) wqe->imm_data = rkey;
}

void wr_local_inv(ibv_qp_ex* base, uint32_t rkey) {
  if (abi::SendWqe* wqe = begin_request(base, IBV_WR_LOCAL_INV)) wqe->imm_data = rkey;
}

void wr_rdma_write(ibv_qp_ex* base, uint32_t rkey, uint64_t address) {
  begin_remote(base, IBV_WR_RDMA_WRITE, rkey, address);
}

void wr_rdma_write_imm(ibv_qp_ex* base, uint32_t rkey, uint64_t address, __be32 imm_data) {
  begin_remote(base, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, address, imm_data);
}

void wr_rdma_read(ibv_qp_ex* base, uint32_t rkey, uint64_t address) {
  begin_remote(base, IBV_WR_RDMA_READ, rkey, address);
}

void wr_atomic_cmp_swp(ibv_qp_ex* base, uint32_t rkey, uint64_t address, uint64_t compare,
                       uint64_t swap) {
  begin_remote(base, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, address);
  builder_qp(base)->builder.wqe.atomic = {compare, swap};
}

void wr_atomic_fetch_add(ibv_qp_ex* base, uint32_t rkey, uint64_t address, uint64_t add) {
  begin_remote(base, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, address);
  builder_qp(base)->builder.wqe.atomic = {add, 0};
}

// ---- Where it goes, and what ----

void wr_set_ud_addr(ibv_qp_ex* base, ibv_ah* ah, uint32_t remote_qpn, uint32_t remote_qkey) {
  builder_qp(base)->builder.wqe.ud = {ah->handle, remote_qpn, remote_qkey, 0};
}

void wr_set_sge_list(ibv_qp_ex* base, size_t count, const ibv_sge* list) {
  Qp* qp = builder_qp(base);
  if (!qp->builder.building) return;
  if (count > qp->send.max_sge) return fail_session(qp, EINVAL);
  qp->builder.wqe.num_sge = static_cast<uint32_t>(count);
  if (count == 0) return;
  memcpy(qp->send.next_slot() + sizeof(abi::SendWqe), list, count * sizeof(abi::Sge));
}

void wr_set_sge(ibv_qp_ex* base, uint32_t lkey, uint64_t address, uint32_t length) {
  const ibv_sge sge{address, length, lkey};
  wr_set_sge_list(base, 1, &sge);
}

void wr_set_inline_data_list(ibv_qp_ex* base, size_t count, const ibv_data_buf* list) {
  Qp* qp = builder_qp(base);
  WorkRequestBuilder& builder = qp->builder;
  if (!builder.building) return;
  if ((bit(static_cast<ibv_wr_opcode>(builder.wqe.opcode)) & kInlineable) == 0) {
    return fail_session(qp, EINVAL);
  }
  std::byte* to = qp->send.next_slot() + sizeof(abi::SendWqe);
  uint32_t size = 0;
  for (size_t i = 0; i < count; ++i) {
    if (list[i].length > qp->max_inline_data - size) return fail_session(qp, EINVAL);
    if (list[i].length == 0) continue;
    memcpy(to + size, list[i].addr, list[i].length);
    size += static_cast<uint32_t>(list[i].length);
  }
  builder.wqe.flags |= IBV_SEND_INLINE;
  builder.wqe.inline_size = size;
}

void wr_set_inline_data(ibv_qp_ex* base, void* address, size_t length) {
  const ibv_data_buf data{address, length};
  wr_set_inline_data_list(base, 1, &data);
}

// ---- The session ----

void wr_start(ibv_qp_ex* base) {
  Qp* qp = builder_qp(base);
  qp->send.lock.lock();
  qp->builder.posted_before = qp->send.posted;
  qp->builder.error = 0;
  qp->builder.building = false;
}

/// "If any of the posted work requests is invalid, none is posted."
int wr_complete(ibv_qp_ex* base) {
  Qp* qp = builder_qp(base);
  WorkRequestBuilder& builder = qp->builder;
  finish_request(qp);
  int error = builder.error;
  if (error == 0 && qp->send.posted != builder.posted_before) {
    DoorbellWriter& doorbells = context_of(base->qp_base.context)->parts.doorbells;
    error = doorbells.ring(abi::DoorbellKind::kSend, base->qp_base.qp_num, qp->send.posted);
  }
  if (error != 0) qp->send.posted = builder.posted_before;
  qp->send.lock.unlock();
  return error;
}

void wr_abort(ibv_qp_ex* base) {
  Qp* qp = builder_qp(base);
  qp->send.posted = qp->builder.posted_before;
  qp->builder.building = false;
  qp->send.lock.unlock();
}

}  // namespace

bool offers(ibv_qp_type type, uint64_t send_ops_flags) {
  constexpr uint64_t kSendOps = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
  constexpr uint64_t kUnreliable = kSendOps | IBV_QP_EX_WITH_RDMA_WRITE |
                                   IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                   IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_LOCAL_INV;
  constexpr uint64_t kReliable = kUnreliable | IBV_QP_EX_WITH_RDMA_READ |
                                 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  switch (type) {
    case IBV_QPT_RC:
      return (send_ops_flags & ~kReliable) == 0;
    case IBV_QPT_UC:
      return (send_ops_flags & ~kUnreliable) == 0;
    case IBV_QPT_UD:
      return (send_ops_flags & ~kSendOps) == 0;
    default:
      return false;
  }
}

void install_work_request_builder(Qp* qp) {
  qp->verbs.comp_mask |= kVerbsQpEx;
  ibv_qp_ex& ex = qp->verbs.qp_ex;
  ex.wr_send = wr_send;
  ex.wr_send_imm = wr_send_imm;
  ex.wr_send_inv = wr_send_inv;
  ex.wr_local_inv = wr_local_inv;
  ex.wr_rdma_write = wr_rdma_write;
  ex.wr_rdma_write_imm = wr_rdma_write_imm;
  ex.wr_rdma_read = wr_rdma_read;
  ex.wr_atomic_cmp_swp = wr_atomic_cmp_swp;
  ex.wr_atomic_fetch_add = wr_atomic_fetch_add;
  ex.wr_set_ud_addr = wr_set_ud_addr;
  ex.wr_set_sge = wr_set_sge;
  ex.wr_set_sge_list = wr_set_sge_list;
  ex.wr_set_inline_data = wr_set_inline_data;
  ex.wr_set_inline_data_list = wr_set_inline_data_list;
  ex.wr_start = wr_start;
  ex.wr_complete = wr_complete;
  ex.wr_abort = wr_abort;
}

}  // namespace rocemu::provider
