#include "verbs_provider/objects/qp_ex.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "verbs_provider/base/layout.h"
#include "verbs_provider/base/objects.h"
#include "verbs_provider/context/context.h"
#include "verbs_provider/context/sanitizer_hooks.h"
#include "verbs_provider/context/verb.h"
#include "verbs_provider/datapath/auto_inline.h"
#include "verbs_provider/datapath/post_list.h"
#include "verbs_provider/datapath/send_wqe.h"
#include "verbs_provider/hooks/note_call.h"

namespace rocemu::provider {
namespace {

constexpr uint32_t kAtomicWriteSize = 8;

/// The setters of a work request, as bits.
enum Setter : uint32_t { kData = 1u << 0, kUdAddress = 1u << 1, kXrcSrqNumber = 1u << 2 };

Qp* builder_qp(ibv_qp_ex* qp) {
  return ours<Qp>(&qp->qp_base);
}

Context::Parts& parts_of(const Qp& qp) {
  return context_of(qp.verbs.qp.context)->parts;
}

/// Discards the request that is being built.
void drop_request(Qp* qp) {
  const auto index = static_cast<uint32_t>(qp->send.posted);
  if (qp->builder.building) release_slots(parts_of(*qp), qp->send, index, index + 1);
  qp->builder.building = false;
}

/// Discards all requests of the session.
void drop_session(Qp* qp) {
  drop_request(qp);
  release_slots(parts_of(*qp), qp->send, static_cast<uint32_t>(qp->builder.posted_before),
                static_cast<uint32_t>(qp->send.posted));
  qp->send.posted = qp->builder.posted_before;
}

/// Notes a failure of the session: "If a failure is detected during operation, for instance due to
/// an invalid argument, then ibv_wr_complete() will return failure". The first failure counts.
void fail_session(Qp* qp, int error) {
  WorkRequestBuilder& builder = qp->builder;
  if (builder.error == 0) builder.error = error;
  drop_request(qp);
}

/// Adds the request that is being built to the queue, or fails the session if a required setter is
/// missing. Called when the application begins the next request or ends the session.
void finish_request(Qp* qp) {
  WorkRequestBuilder& builder = qp->builder;
  if (!builder.building) return;
  // ibv_wr_post(3): "Certain QP types require each post to be accompanied by additional setters"
  if (builder.missing != 0) return fail_session(qp, EINVAL);
  memcpy(qp->send.next_slot(), &builder.wqe, sizeof(builder.wqe));
  ++qp->send.posted;
  builder.building = false;
}

/// Returns the setters, other than setters of data, that an operation requires on a QP of this
/// type. An operation that sends no packet needs no address.
uint32_t required_setters(ibv_qp_type type, ibv_wr_opcode opcode) {
  if ((bit(opcode) & kLocal) != 0) return 0;
  if (type == IBV_QPT_UD) return kUdAddress;
  if (type == IBV_QPT_XRC_SEND) return kXrcSrqNumber;
  return 0;
}

/// Starts the next request. Returns nullptr if that is not possible.
abi::SendWqe* begin_request(ibv_qp_ex* base, ibv_wr_opcode opcode) {
  Qp* qp = builder_qp(base);
  WorkRequestBuilder& builder = qp->builder;
  finish_request(qp);
  if (builder.error != 0) return nullptr;
  if (!can_send(qp->state.load(std::memory_order_acquire)) ||
      (qp->builder_opcodes & bit(opcode)) == 0 || !are_valid(base->wr_flags)) {
    fail_session(qp, EINVAL);
    return nullptr;
  }
  if (qp->send.is_full()) {
    fail_session(qp, ENOMEM);
    return nullptr;
  }
  builder.building = true;
  builder.missing = required_setters(base->qp_base.qp_type, opcode);
  builder.allowed = builder.missing;
  if ((bit(opcode) & kDataless) == 0) builder.allowed |= kData;
  builder.wqe = abi::SendWqe{};
  builder.wqe.wr_id = base->wr_id;
  builder.wqe.opcode = opcode;
  builder.wqe.flags = base->wr_flags & ~unsigned{IBV_SEND_INLINE};
  return &builder.wqe;
}

/// Starts setting a part of the current request. Returns nullptr if the request has no such part,
/// or has it already.
abi::SendWqe* begin_setter(Qp* qp, Setter setter) {
  WorkRequestBuilder& builder = qp->builder;
  if (!builder.building || (builder.allowed & setter) == 0) {
    fail_session(qp, EINVAL);
    return nullptr;
  }
  builder.allowed &= ~uint32_t{setter};
  builder.missing &= ~uint32_t{setter};
  return &builder.wqe;
}

abi::SendWqe* begin_remote(ibv_qp_ex* base, ibv_wr_opcode opcode, uint32_t rkey, uint64_t address) {
  abi::SendWqe* wqe = begin_request(base, opcode);
  if (wqe == nullptr) return nullptr;
  wqe->rkey = rkey;
  wqe->remote_address = address;
  return wqe;
}

// ---- Operations ----

void wr_send(ibv_qp_ex* base) {
  begin_request(base, IBV_WR_SEND);
}

void wr_send_imm(ibv_qp_ex* base, __be32 imm_data) {
  if (auto* wqe = begin_request(base, IBV_WR_SEND_WITH_IMM)) wqe->imm_data = imm_data;
}

void wr_send_inv(ibv_qp_ex* base, uint32_t rkey) {
  if (auto* wqe = begin_request(base, IBV_WR_SEND_WITH_INV)) wqe->imm_data = rkey;
}

void wr_send_tso(ibv_qp_ex* base, void*, uint16_t, uint16_t) {
  fail_session(builder_qp(base), EOPNOTSUPP);
}

void wr_local_inv(ibv_qp_ex* base, uint32_t rkey) {
  if (auto* wqe = begin_request(base, IBV_WR_LOCAL_INV)) wqe->imm_data = rkey;
}

void wr_bind_mw(ibv_qp_ex* base, ibv_mw* mw, uint32_t rkey, const ibv_mw_bind_info* info) {
  abi::SendWqe* wqe = begin_request(base, IBV_WR_BIND_MW);
  if (wqe == nullptr) return;
  // ibv_wr_post(3) about ibv_wr_bind_mw(): "Bind a MW type 2"
  if (mw == nullptr || mw->type != IBV_MW_TYPE_2 || info == nullptr || !is_valid(*info)) {
    return fail_session(builder_qp(base), EINVAL);
  }
  write_bind(*mw, rkey, *info, wqe);
  Qp* qp = builder_qp(base);
  memcpy(qp->send.next_slot() + sizeof(*wqe), &mw, sizeof(mw));  // a bind has no data there
  qp->builder.binds = true;
}

/// Stores the new R_Keys in the ibv_mw of all windows that were bound in this session. Must be
/// called when the session has been posted.
void tell_keys(const Qp& qp) {
  for (uint64_t i = qp.builder.posted_before; i != qp.send.posted; ++i) {
    const std::byte* slot = qp.send.slot(i);
    abi::SendWqe wqe;
    memcpy(&wqe, slot, sizeof(wqe));
    if (wqe.opcode != IBV_WR_BIND_MW) continue;
    ibv_mw* window;
    memcpy(&window, slot + sizeof(wqe), sizeof(window));
    window->rkey = wqe.rkey;
  }
}

void wr_rdma_write(ibv_qp_ex* base, uint32_t rkey, uint64_t address) {
  begin_remote(base, IBV_WR_RDMA_WRITE, rkey, address);
}

void wr_rdma_write_imm(ibv_qp_ex* base, uint32_t rkey, uint64_t address, __be32 imm_data) {
  if (auto* wqe = begin_remote(base, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, address)) {
    wqe->imm_data = imm_data;
  }
}

void wr_rdma_read(ibv_qp_ex* base, uint32_t rkey, uint64_t address) {
  begin_remote(base, IBV_WR_RDMA_READ, rkey, address);
}

void wr_atomic_cmp_swp(ibv_qp_ex* base, uint32_t rkey, uint64_t address, uint64_t compare,
                       uint64_t swap) {
  if (auto* wqe = begin_remote(base, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, address)) {
    wqe->atomic = {compare, swap};
  }
}

void wr_atomic_fetch_add(ibv_qp_ex* base, uint32_t rkey, uint64_t address, uint64_t add) {
  if (auto* wqe = begin_remote(base, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, address)) {
    wqe->atomic = {add, 0};
  }
}

/// Builds an ATOMIC WRITE. Its data is an argument of the operation, so it needs no setter for
/// data.
void wr_atomic_write(ibv_qp_ex* base, uint32_t rkey, uint64_t address, const void* data) {
  abi::SendWqe* wqe = begin_remote(base, kAtomicWrite, rkey, address);
  if (wqe == nullptr) return;
  Qp* qp = builder_qp(base);
  qp->builder.allowed &= ~uint32_t{kData};
  memcpy(qp->send.next_slot() + sizeof(*wqe), data, kAtomicWriteSize);
  wqe->flags |= IBV_SEND_INLINE;
  wqe->inline_size = kAtomicWriteSize;
}

// ---- Addresses and data ----

void wr_set_ud_addr(ibv_qp_ex* base, ibv_ah* ah, uint32_t remote_qpn, uint32_t remote_qkey) {
  Qp* qp = builder_qp(base);
  abi::SendWqe* wqe = begin_setter(qp, kUdAddress);
  if (wqe == nullptr) return;
  if (ah == nullptr) return fail_session(qp, EINVAL);
  wqe->ud = {ah->handle, remote_qpn, remote_qkey, 0};
}

void wr_set_xrc_srqn(ibv_qp_ex* base, uint32_t remote_srqn) {
  if (auto* wqe = begin_setter(builder_qp(base), kXrcSrqNumber)) wqe->remote_srqn = remote_srqn;
}

void wr_set_sge_list(ibv_qp_ex* base, size_t count, const ibv_sge* list) {
  Qp* qp = builder_qp(base);
  abi::SendWqe* wqe = begin_setter(qp, kData);
  if (wqe == nullptr) return;
  if (count > qp->send.max_sge) return fail_session(qp, EINVAL);
  wqe->num_sge = static_cast<uint32_t>(count);
  std::byte* data = qp->send.next_slot() + sizeof(*wqe);
  copy_sges(list, wqe->num_sge, data);
  if (can_carry(static_cast<ibv_wr_opcode>(wqe->opcode), wqe->flags)) {
    carry(base->qp_base.context, list, wqe->num_sge, data + wqe->num_sge * sizeof(abi::Sge),
          qp->send, *wqe);
  }
}

void wr_set_sge(ibv_qp_ex* base, uint32_t lkey, uint64_t address, uint32_t length) {
  const ibv_sge sge{address, length, lkey};
  wr_set_sge_list(base, 1, &sge);
}

void wr_set_inline_data_list(ibv_qp_ex* base, size_t count, const ibv_data_buf* list) {
  Qp* qp = builder_qp(base);
  abi::SendWqe* wqe = begin_setter(qp, kData);
  if (wqe == nullptr) return;
  if ((bit(static_cast<ibv_wr_opcode>(wqe->opcode)) & kInlineable) == 0) {
    return fail_session(qp, EINVAL);
  }
  std::byte* to = qp->send.next_slot() + sizeof(*wqe);
  uint32_t size = 0;
  for (size_t i = 0; i < count; ++i) {
    if (list[i].length > qp->max_inline_data - size) return fail_session(qp, EINVAL);
    if (list[i].length == 0) continue;
    memcpy(to + size, list[i].addr, list[i].length);
    size += static_cast<uint32_t>(list[i].length);
  }
  wqe->flags |= IBV_SEND_INLINE;
  wqe->inline_size = size;
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
  qp->builder.binds = false;
}

PostedRequests shown(const Qp& qp) {
  return {.kind = abi::WorkQueue::kSend,
          .object = &qp.verbs.qp,
          .call = "ibv_wr_complete",
          .queue = qp.send,
          .begin = qp.builder.posted_before,
          .end = qp.send.posted,
          .head = nullptr,
          .head_wr_id = 0};
}

/// Reports the session's requests to the sanitizer; a failed session has none.
void show_session(const Qp& qp, int error) {
  PostedRequests posted = shown(qp);
  if (error == 0) return sanitizer()->posted(posted, nullptr);
  posted.end = posted.begin;
  RefusedRequest refused{};
  refused.error = error;
  refused.is_state_wrong = !can_send(qp.state.load(std::memory_order_acquire));
  sanitizer()->posted(posted, &refused);
}

/// Ends the session and posts its requests. If any of them is invalid, "the entire posting will be
/// aborted".
int wr_complete(ibv_qp_ex* base) {
  Qp* qp = builder_qp(base);
  WorkRequestBuilder& builder = qp->builder;
  finish_request(qp);
  ibv_context* context = base->qp_base.context;
  int error = builder.error;
  if (error == 0) error = ask(context, abi::Op::kPostSend, base->qp_base.qp_num);
  if (error == 0) note_call(abi::Op::kPostSend, qp->send.posted - builder.posted_before);
  if (sanitizer() != nullptr) [[unlikely]]
    show_session(*qp, error);
  if (error == 0 && qp->send.posted != builder.posted_before) {
    qp->send.tell();
    if (builder.binds) tell_keys(*qp);
    DoorbellWriter& doorbells = context_of(context)->parts.doorbells;
    error = doorbells.ring(abi::DoorbellKind::kSend, base->qp_base.qp_num, qp->send.posted);
  }
  if (error != 0) {
    if (sanitizer() != nullptr && builder.error == 0) [[unlikely]]
      sanitizer()->taken_back(shown(*qp));
    drop_session(qp);
    qp->send.tell();
  }
  qp->send.lock.unlock();
  return error;
}

void wr_abort(ibv_qp_ex* base) {
  Qp* qp = builder_qp(base);
  drop_session(qp);
  qp->send.lock.unlock();
}

// ---- The supported operations ----

// IBV_QP_EX_WITH_FLUSH and IBV_QP_EX_WITH_ATOMIC_WRITE, which older headers lack
constexpr uint64_t kWithFlush = 1u << 11;
constexpr uint64_t kWithAtomicWrite = 1u << 12;

/// Returns the opcodes for which the ibv_qp_ex of this libibverbs has no function.
uint32_t without_builder() {
  return (layout.has_flush() ? 0 : bit(kFlush)) |
         (layout.has_atomic_write() ? 0 : bit(kAtomicWrite));
}

struct Operation {
  uint64_t flag;
  ibv_wr_opcode opcode;
};

constexpr Operation kOperations[] = {
    {IBV_QP_EX_WITH_RDMA_WRITE, IBV_WR_RDMA_WRITE},
    {IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM},
    {IBV_QP_EX_WITH_SEND, IBV_WR_SEND},
    {IBV_QP_EX_WITH_SEND_WITH_IMM, IBV_WR_SEND_WITH_IMM},
    {IBV_QP_EX_WITH_RDMA_READ, IBV_WR_RDMA_READ},
    {IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP},
    {IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD},
    {IBV_QP_EX_WITH_LOCAL_INV, IBV_WR_LOCAL_INV},
    {IBV_QP_EX_WITH_BIND_MW, IBV_WR_BIND_MW},
    {IBV_QP_EX_WITH_SEND_WITH_INV, IBV_WR_SEND_WITH_INV},
    {kWithFlush, kFlush},
    {kWithAtomicWrite, kAtomicWrite},
};

/// Returns the opcodes of all these flags, or 0 if a flag is not in the table, such as TSO.
uint32_t opcodes_with(uint64_t send_ops_flags) {
  uint32_t opcodes = 0;
  for (const Operation& operation : kOperations) {
    if ((send_ops_flags & operation.flag) == 0) continue;
    opcodes |= bit(operation.opcode);
    send_ops_flags &= ~operation.flag;
  }
  return send_ops_flags == 0 ? opcodes : 0;
}

}  // namespace

bool offers(ibv_qp_type type, uint64_t send_ops_flags, uint32_t refused_opcodes) {
  const uint32_t opcodes = opcodes_with(send_ops_flags);
  if (opcodes == 0 && send_ops_flags != 0) return false;
  return (opcodes & ~(opcodes_of(type) & ~without_builder() & ~refused_opcodes)) == 0;
}

/// Builds a FLUSH, which names a range of the peer's memory and has no data (IBTA vol 1, A19).
void wr_flush(ibv_qp_ex* base, uint32_t rkey, uint64_t address, size_t length, uint8_t type,
              uint8_t level) {
  abi::SendWqe* wqe = begin_remote(base, kFlush, rkey, address);
  if (wqe == nullptr) return;
  if (length > UINT32_MAX) return fail_session(builder_qp(base), EINVAL);
  wqe->flush = {static_cast<uint32_t>(length), type, level, 0};
}

void make_room_for(uint64_t send_ops_flags, ibv_qp_cap* cap) {
  if ((send_ops_flags & kWithAtomicWrite) == 0) return;
  cap->max_inline_data = std::max(cap->max_inline_data, kAtomicWriteSize);
}

void install_work_request_builder(Qp* qp, uint64_t send_ops_flags) {
  qp->builder_opcodes = opcodes_with(send_ops_flags);
  QpEx& ex = qp->verbs.qp_ex;
  ex.wr_send = verb<wr_send>;
  ex.wr_send_imm = verb<wr_send_imm>;
  ex.wr_send_inv = verb<wr_send_inv>;
  ex.wr_send_tso = verb<wr_send_tso>;
  ex.wr_local_inv = verb<wr_local_inv>;
  ex.wr_bind_mw = verb<wr_bind_mw>;
  ex.wr_rdma_write = verb<wr_rdma_write>;
  ex.wr_rdma_write_imm = verb<wr_rdma_write_imm>;
  ex.wr_rdma_read = verb<wr_rdma_read>;
  ex.wr_atomic_cmp_swp = verb<wr_atomic_cmp_swp>;
  ex.wr_atomic_fetch_add = verb<wr_atomic_fetch_add>;
  ex.wr_set_ud_addr = verb<wr_set_ud_addr>;
  ex.wr_set_xrc_srqn = verb<wr_set_xrc_srqn>;
  ex.wr_set_sge = verb<wr_set_sge>;
  ex.wr_set_sge_list = verb<wr_set_sge_list>;
  ex.wr_set_inline_data = verb<wr_set_inline_data>;
  ex.wr_set_inline_data_list = verb<wr_set_inline_data_list>;
  ex.wr_start = verb<wr_start>;
  ex.wr_complete = verb<wr_complete, InChild::kFails, "wr_complete">;
  ex.wr_abort = verb<wr_abort>;
  // An older libibverbs without this function has its own members at this position.
  if (layout.has_atomic_write()) ex.wr_atomic_write = verb<wr_atomic_write>;
  if (layout.has_flush()) ex.wr_flush = verb<wr_flush>;
  mark_as_extended(&qp->verbs);
}

}  // namespace rocemu::provider
