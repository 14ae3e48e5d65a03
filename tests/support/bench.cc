#include "tests/support/bench.h"

#include <algorithm>
#include <cstring>

namespace rocemu::test {

using engine::Instant;

void Bench::step_once(const engine::Input& input) {
  outputs_.clear();
  if (observer_ != nullptr) observer_->before_step(now_, input);
  engine_.step(now_, input, outputs_);
  if (observer_ != nullptr) observer_->after_step(outputs_);
  if (outputs_.reply) reply_ = outputs_.reply;
  for (engine::Output& output : outputs_.list) log.push_back({now_, std::move(output)});
  outputs_.list.clear();
  misuses.insert(misuses.end(), outputs_.misuses.begin(), outputs_.misuses.end());
}

void Bench::step(const engine::Input& input) {
  step_once(input);
  for (auto next = engine_.next_deadline(); next && *next <= now_; next = engine_.next_deadline()) {
    step_once(engine::Tick{});
  }
}

void Bench::advance_to(engine::Duration time) {
  const Instant target{time};
  for (auto next = engine_.next_deadline(); next && *next <= target;
       next = engine_.next_deadline()) {
    now_ = std::max(now_, *next);
    step_once(engine::Tick{});
  }
  now_ = std::max(now_, target);
}

abi::Reply Bench::command(engine::ClientId client, abi::Op op, const abi::Request::Body& body,
                          int refusal) {
  abi::Request request{};
  request.magic = abi::kMagic;
  request.version = abi::kVersion;
  request.refusal = static_cast<uint16_t>(refusal);
  request.op = op;
  request.body = body;
  reply_.reset();
  step(engine::Command{client, request});
  return reply_.value();
}

uint32_t Client::alloc_pd() {
  const abi::Reply reply = command(abi::Op::kAllocPd, {});
  error = reply.error;
  return reply.body.object.handle;
}

Mr Client::reg_mr(uint32_t pd, uint64_t address, uint64_t length, uint32_t access,
                  std::optional<uint64_t> iova) {
  abi::Request::Body body{};
  body.reg_mr = {.pd = pd,
                 .access = access,
                 .address = address,
                 .length = length,
                 .iova = iova.value_or(address),
                 .kind = abi::RegionKind::kMemory,
                 .is_shared = 0};
  const abi::Reply reply = command(abi::Op::kRegMr, body);
  error = reply.error;
  return {reply.body.reg_mr.handle, reply.body.reg_mr.lkey, reply.body.reg_mr.rkey};
}

Mr Client::alloc_null_mr(uint32_t pd) {
  abi::Request::Body body{};
  body.reg_mr.pd = pd;
  body.reg_mr.kind = abi::RegionKind::kNull;
  const abi::Reply reply = command(abi::Op::kRegMr, body);
  error = reply.error;
  return {reply.body.reg_mr.handle, reply.body.reg_mr.lkey, reply.body.reg_mr.rkey};
}

Mr Client::rereg_mr(uint32_t handle, uint32_t flags, uint32_t pd, uint64_t address, uint64_t length,
                    uint32_t access) {
  abi::Request::Body body{};
  body.rereg_mr = {.handle = handle,
                   .flags = flags,
                   .pd = pd,
                   .access = access,
                   .address = address,
                   .length = length,
                   .iova = address,
                   .is_shared = 0,
                   .reserved = 0};
  const abi::Reply reply = command(abi::Op::kReregMr, body);
  error = reply.error;
  return {reply.body.reg_mr.handle, reply.body.reg_mr.lkey, reply.body.reg_mr.rkey};
}

Mw Client::alloc_mw(uint32_t pd, abi::MwType type) {
  abi::Request::Body body{};
  body.alloc_mw = {.pd = pd, .type = type};
  const abi::Reply reply = command(abi::Op::kAllocMw, body);
  error = reply.error;
  return {reply.body.alloc_mw.handle, reply.body.alloc_mw.rkey};
}

uint32_t Client::alloc_dm(uint64_t length, uint32_t log_align) {
  abi::Request::Body body{};
  body.alloc_dm = {.length = length, .log_align = log_align};
  const abi::Reply reply = command(abi::Op::kAllocDm, body);
  error = reply.error;
  return reply.body.object.handle;
}

int Client::advise_mr(uint32_t pd, uint32_t advice, uint32_t flags,
                      const std::vector<abi::Sge>& sges) {
  abi::Request::Body body{};
  body.advise_mr.pd = pd;
  body.advise_mr.advice = advice;
  body.advise_mr.flags = flags;
  body.advise_mr.num_sge = static_cast<uint32_t>(sges.size());
  std::copy_n(sges.begin(), std::min<size_t>(sges.size(), abi::kMaxAdviseSges),
              body.advise_mr.sges);
  return error = command(abi::Op::kAdviseMr, body).error;
}

int Client::resize_cq(uint32_t handle, uint32_t capacity) {
  abi::Request::Body body{};
  body.resize_cq = {.handle = handle, .capacity = capacity};
  return error = command(abi::Op::kResizeCq, body).error;
}

int Client::modify_cq(uint32_t handle, uint32_t count, uint32_t period_us) {
  abi::Request::Body body{};
  body.modify_cq = {.handle = handle, .count = count, .period = period_us};
  return error = command(abi::Op::kModifyCq, body).error;
}

uint32_t Client::create_cq(uint32_t capacity, uint64_t user_handle, uint64_t channel) {
  abi::Request::Body body{};
  body.create_cq = {
      .user_handle = user_handle, .channel_inode = channel, .capacity = capacity, .comp_vector = 0};
  const abi::Reply reply = command(abi::Op::kCreateCq, body);
  error = reply.error;
  return reply.body.create_cq.handle;
}

uint32_t Client::create_qp(uint32_t pd, uint32_t send_cq, uint32_t recv_cq, const abi::QpCap& cap,
                           bool sig_all, uint64_t user_handle) {
  return create_qp({.pd = pd,
                    .send_cq = send_cq,
                    .recv_cq = recv_cq,
                    .cap = cap,
                    .sig_all = sig_all,
                    .user_handle = user_handle});
}

uint32_t Client::create_qp(const QpInit& init) {
  abi::Request::Body body{};
  body.create_qp = {.user_handle = init.user_handle,
                    .pd = init.pd,
                    .send_cq = init.send_cq,
                    .recv_cq = init.recv_cq,
                    .srq = init.srq,
                    .xrcd = init.xrcd,
                    .type = init.type,
                    .sq_sig_all = init.sig_all ? 1u : 0u,
                    .cap = init.cap};
  const abi::Reply reply = command(abi::Op::kCreateQp, body);
  error = reply.error;
  generation = reply.body.create_qp.generation;
  return reply.body.create_qp.qpn;
}

uint32_t Client::create_srq(const SrqInit& init) {
  abi::Request::Body body{};
  body.create_srq = {.user_handle = init.user_handle,
                     .pd = init.pd,
                     .type = init.type,
                     .xrcd = init.xrcd,
                     .cq = init.cq,
                     .max_wr = init.max_wr,
                     .max_sge = init.max_sge,
                     .limit = init.limit};
  const abi::Reply reply = command(abi::Op::kCreateSrq, body);
  error = reply.error;
  return reply.body.create_srq.handle;
}

int Client::modify_srq(uint32_t handle, uint32_t mask, uint32_t max_wr, uint32_t limit) {
  abi::Request::Body body{};
  body.modify_srq = {.handle = handle, .mask = mask, .max_wr = max_wr, .limit = limit};
  return error = command(abi::Op::kModifySrq, body).error;
}

SrqAttr Client::query_srq(uint32_t handle) {
  abi::Request::Body body{};
  body.object.handle = handle;
  const abi::Reply reply = command(abi::Op::kQuerySrq, body);
  error = reply.error;
  const auto& out = reply.body.query_srq;
  return {.max_wr = out.max_wr, .max_sge = out.max_sge, .limit = out.limit};
}

uint32_t Client::create_ah(uint32_t pd, const abi::AhAttr& attr) {
  abi::Request::Body body{};
  body.create_ah = {.pd = pd, .attr = attr};
  const abi::Reply reply = command(abi::Op::kCreateAh, body);
  error = reply.error;
  return reply.body.object.handle;
}

int Client::on_handle(abi::Op op, uint32_t handle) {
  abi::Request::Body body{};
  body.object.handle = handle;
  return error = command(op, body).error;
}

int Client::modify_qp(uint32_t qpn, const abi::QpAttr& attr, uint32_t mask) {
  abi::Request::Body body{};
  body.modify_qp = {.qpn = qpn, .mask = mask, .attr = attr};
  const abi::Reply reply = command(abi::Op::kModifyQp, body);
  if (reply.error == 0) generation = reply.body.modify_qp.generation;
  return error = reply.error;
}

int Client::set_state(uint32_t qpn, abi::QpState state) {
  abi::QpAttr attr{};
  attr.qp_state = static_cast<uint32_t>(state);
  return modify_qp(qpn, attr, abi::kAttrState);
}

abi::QpAttr Client::query_qp(uint32_t qpn) {
  abi::Request::Body body{};
  body.object.handle = qpn;
  const abi::Reply reply = command(abi::Op::kQueryQp, body);
  error = reply.error;
  return reply.body.query_qp.attr;
}

void Client::post_send(uint32_t qpn, const SendWr& wr) {
  const auto wqe = send_wqe(wr, query_qp(qpn).cap);
  bench_.step(engine::PostSend{id_, engine::QpNumber{qpn}, wqe});
}

void Client::post_sends(uint32_t qpn, const std::vector<SendWr>& wrs) {
  const abi::QpCap cap = query_qp(qpn).cap;
  std::vector<std::byte> wqes;
  for (const SendWr& wr : wrs) {
    const auto wqe = send_wqe(wr, cap);
    wqes.insert(wqes.end(), wqe.begin(), wqe.end());
  }
  bench_.step(engine::PostSend{id_, engine::QpNumber{qpn}, wqes});
}

void Client::post_recv(uint32_t qpn, const RecvWr& wr) {
  const auto wqe = recv_wqe(wr, query_qp(qpn).cap.max_recv_sge);
  bench_.step(engine::PostRecv{id_, engine::QpNumber{qpn}, wqe});
}

void Client::post_srq_recv(uint32_t srq, const RecvWr& wr) {
  const auto wqe = recv_wqe(wr, query_srq(srq).max_sge);
  bench_.step(engine::PostSrqRecv{id_, engine::SrqId{srq}, wqe});
}

std::vector<std::byte> send_wqe(const SendWr& wr, const abi::QpCap& cap) {
  std::vector<std::byte> bytes(abi::send_stride(cap.max_send_sge, cap.max_inline_data),
                               std::byte{0xa5});
  abi::SendWqe header{};
  header.wr_id = wr.wr_id;
  header.opcode = static_cast<uint32_t>(wr.opcode);
  header.flags = wr.flags;
  header.imm_data = wr.imm;
  header.remote_address = wr.remote_address;
  header.rkey = wr.rkey;
  header.atomic = {wr.compare_add, wr.swap};
  header.slot = wr.slot;
  if (wr.bind) {
    header.window = wr.bind->window;
    header.bind = {.length = wr.bind->length, .lkey = wr.bind->lkey, .access = wr.bind->access};
  }
  if (wr.flush) {
    header.flush = {.length = wr.flush->length,
                    .type = wr.flush->type,
                    .level = wr.flush->level,
                    .reserved = 0};
  }
  if (wr.remote_qpn != 0) {
    header.ud = {
        .ah = wr.ah, .remote_qpn = wr.remote_qpn, .remote_qkey = wr.remote_qkey, .reserved = 0};
  }
  header.remote_srqn = wr.remote_srqn;
  header.num_sge = static_cast<uint32_t>(wr.sges.size());
  header.inline_size = static_cast<uint32_t>(wr.inline_data.size());
  std::memcpy(bytes.data(), &header, sizeof(header));
  const size_t room = bytes.size() - sizeof(header);
  if ((wr.flags & abi::kSendInline) != 0) {
    std::copy_n(reinterpret_cast<const std::byte*>(wr.inline_data.data()),
                std::min(room, wr.inline_data.size()), bytes.begin() + sizeof(header));
  } else {
    const size_t size = std::min(room, wr.sges.size() * sizeof(abi::Sge));
    std::copy_n(reinterpret_cast<const std::byte*>(wr.sges.data()), size,
                bytes.begin() + sizeof(header));
    std::copy_n(reinterpret_cast<const std::byte*>(wr.inline_data.data()),
                std::min(room - size, wr.inline_data.size()),
                bytes.begin() + static_cast<ptrdiff_t>(sizeof(header) + size));
  }
  return bytes;
}

std::vector<std::byte> recv_wqe(const RecvWr& wr, uint32_t max_sge) {
  std::vector<std::byte> bytes(abi::recv_stride(max_sge), std::byte{0xa5});
  const abi::RecvWqe header{
      .wr_id = wr.wr_id, .num_sge = static_cast<uint32_t>(wr.sges.size()), .reserved = 0};
  std::memcpy(bytes.data(), &header, sizeof(header));
  const size_t room = bytes.size() - sizeof(header);
  const size_t size = std::min(room, wr.sges.size() * sizeof(abi::Sge));
  std::copy_n(reinterpret_cast<const std::byte*>(wr.sges.data()), size,
              bytes.begin() + sizeof(header));
  return bytes;
}

abi::AhAttr address_vector(const wire::IpAddress& to, uint8_t sgid_index) {
  abi::AhAttr attr{};
  std::copy(to.bytes.begin(), to.bytes.end(), attr.dgid);
  attr.sgid_index = sgid_index;
  attr.hop_limit = 64;
  attr.is_global = 1;
  attr.port_num = 1;
  return attr;
}

Transition transition_to(abi::QpState to, const Connection& connection, const abi::AhAttr& peer,
                         uint32_t peer_qpn) {
  Transition out;
  abi::QpAttr& attr = out.attr;
  attr.qp_state = static_cast<uint32_t>(to);
  out.mask = abi::kAttrState;
  const bool is_ud = connection.type == abi::QpType::kUd;
  const bool is_uc = connection.type == abi::QpType::kUc;
  switch (to) {
    case abi::QpState::kInit:
      attr.port_num = 1;
      if (is_ud) {
        attr.qkey = connection.qkey;
        out.mask |= abi::kAttrPkeyIndex | abi::kAttrPort | abi::kAttrQkey;
        break;
      }
      attr.qp_access_flags = connection.access;
      out.mask |= abi::kAttrPkeyIndex | abi::kAttrPort | abi::kAttrAccessFlags;
      break;
    case abi::QpState::kRtr:
      if (is_ud) break;
      attr.ah_attr = peer;
      attr.path_mtu = static_cast<uint32_t>(connection.mtu);
      attr.dest_qp_num = peer_qpn;
      attr.rq_psn = connection.rq_psn;
      attr.max_dest_rd_atomic = connection.max_rd_atomic;
      attr.min_rnr_timer = connection.min_rnr_timer;
      out.mask |= abi::kAttrAv | abi::kAttrPathMtu | abi::kAttrDestQpn | abi::kAttrRqPsn;
      if (!is_uc && connection.type != abi::QpType::kXrcSend) {
        out.mask |= abi::kAttrMaxDestRdAtomic | abi::kAttrMinRnrTimer;
      }
      break;
    case abi::QpState::kRts:
      attr.timeout = connection.timeout;
      attr.retry_cnt = connection.retry_cnt;
      attr.rnr_retry = connection.rnr_retry;
      attr.sq_psn = connection.sq_psn;
      attr.max_rd_atomic = connection.max_rd_atomic;
      out.mask |= abi::kAttrSqPsn;
      if (is_ud || is_uc) break;
      out.mask |= abi::kAttrTimeout;
      if (connection.type == abi::QpType::kXrcRecv) break;
      out.mask |= abi::kAttrRetryCnt | abi::kAttrRnrRetry | abi::kAttrMaxQpRdAtomic;
      break;
    case abi::QpState::kReset:
    case abi::QpState::kSqd:
    case abi::QpState::kSqe:
    case abi::QpState::kErr:
      break;
  }
  return out;
}

bool bring_up(Client& client, uint32_t qpn, abi::QpState to, const Connection& connection,
              const abi::AhAttr& peer, uint32_t peer_qpn) {
  using abi::QpState;
  std::vector<QpState> way = {QpState::kInit, QpState::kRtr, QpState::kRts};
  if (to == QpState::kReset) way.clear();
  if (to == QpState::kInit || to == QpState::kRtr) way.resize(static_cast<size_t>(to));
  if (to == QpState::kSqd || to == QpState::kErr) way.push_back(to);
  for (const QpState state : way) {
    const Transition step = transition_to(state, connection, peer, peer_qpn);
    if (client.modify_qp(qpn, step.attr, step.mask) != 0) return false;
  }
  return true;
}

}  // namespace rocemu::test
