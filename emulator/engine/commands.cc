#include "emulator/engine/commands.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "emulator/engine/path.h"
#include "emulator/engine/qp_attributes.h"
#include "emulator/engine/requester.h"
#include "emulator/engine/responder.h"

namespace rocemu::engine {
namespace {

using abi::Op;
using abi::QpState;
using abi::Reply;
using abi::Request;

// Each handler fills the reply's body and returns 0, or an errno value.

int query_device(const Device& device, abi::DeviceAttr& attr) {
  attr.node_guid = attr.sys_image_guid = node_guid(device.config);
  attr.max_mr_size = ~uint64_t{0};
  attr.page_size_cap = 0xfffff000;
  attr.vendor_id = 0xffffff;  // "no IEEE OUI", as other software devices
  attr.vendor_part_id = 0;
  constexpr uint32_t kPortActiveEvent = 1u << 10, kSysImageGuid = 1u << 11, kRcRnrNakGen = 1u << 12;
  attr.device_cap_flags = kPortActiveEvent | kSysImageGuid | kRcRnrNakGen;
  attr.max_qp = kMaxQps;
  attr.max_qp_wr = kMaxQpWr;
  attr.max_sge = kMaxSge;
  attr.max_sge_rd = kMaxSge;
  attr.max_cq = kMaxCqs;
  attr.max_cqe = kMaxCqe;
  attr.max_mr = MemoryTable::kMaxRegions;
  attr.max_pd = kMaxPds;
  attr.max_qp_rd_atom = kMaxRdAtomic;
  attr.max_res_rd_atom = kMaxRdAtomic * 1024;
  attr.max_qp_init_rd_atom = kMaxRdAtomic;
  attr.atomic_cap = 1;  // IBV_ATOMIC_HCA: atomic among the operations of this device
  attr.max_ah = kMaxAhs;
  attr.max_inline_data = kMaxInlineData;
  attr.max_pkeys = kPkeyTableLength;
  attr.local_ca_ack_delay = 15;
  attr.phys_port_cnt = 1;
  attr.num_comp_vectors = kCompVectors;
  static_assert(sizeof(ROCEMU_VERSION) <= sizeof(attr.fw_ver));
  std::memcpy(attr.fw_ver, ROCEMU_VERSION, sizeof(ROCEMU_VERSION));
  return 0;
}

int query_port(const Device& device, uint32_t port, abi::PortAttr& attr) {
  if (port != 1) return EINVAL;
  constexpr uint32_t kCmSupported = 1u << 16, kIpBasedGids = 1u << 26;
  constexpr uint8_t kWidth4x = 2, kSpeedEdr = 32, kLinkUp = 5, kDisabled = 3;
  attr.state = static_cast<uint32_t>(device.port_state);
  attr.max_mtu = static_cast<uint32_t>(abi::Mtu::k4096);
  attr.active_mtu = static_cast<uint32_t>(device.config.active_mtu);
  attr.gid_tbl_len = kGidTableLength;
  attr.port_cap_flags = kCmSupported | kIpBasedGids;
  attr.max_msg_sz = static_cast<uint32_t>(kMaxMessage);
  attr.pkey_tbl_len = kPkeyTableLength;
  attr.active_width = kWidth4x;
  attr.active_speed = kSpeedEdr;
  attr.phys_state = device.port_state == abi::PortState::kActive ? kLinkUp : kDisabled;
  return 0;
}

template <class IdType, class Object>
Object* owned(const Table<IdType, Object>& table, uint32_t handle, ClientId client) {
  Object* object = table.find(IdType{handle});
  return object != nullptr && object->client == client ? object : nullptr;
}

int alloc_pd(Fabric& fabric, ClientId client, uint32_t& handle) {
  const ProtectionDomain* pd = fabric.pds.create(client);
  if (pd == nullptr) return ENOMEM;
  handle = pd->id.value;
  return 0;
}

int dealloc_pd(Fabric& fabric, ClientId client, uint32_t handle) {
  const ProtectionDomain* pd = owned(fabric.pds, handle, client);
  if (pd == nullptr) return EINVAL;
  if (pd->users != 0) return EBUSY;
  fabric.pds.destroy(pd->id);
  return 0;
}

/// Is there memory at all? A NIC finds out when it pins the pages; first and last are looked at
/// here, the rest when it is used.
bool mapped(Fabric& fabric, ClientId client, uint64_t address, uint64_t length) {
  if (length == 0) return true;
  std::array<uint8_t, 2> ends;
  const std::array<RemoteRange, 2> ranges{{{address, 1}, {address + length - 1, 1}}};
  const std::array<std::span<uint8_t>, 1> target{ends};
  return fabric.host_memory().read(client, ranges, target) == MemoryResult::kDone;
}

int reg_mr(Fabric& fabric, ClientId client, const Request::Body& in, Reply::Body& out) {
  const auto& arguments = in.reg_mr;
  ProtectionDomain* pd = owned(fabric.pds, arguments.pd, client);
  if (pd == nullptr) return EINVAL;
  constexpr uint32_t kKnown = abi::kAccessLocalWrite | abi::kAccessRemoteWrite |
                              abi::kAccessRemoteRead | abi::kAccessRemoteAtomic |
                              abi::kAccessMwBind | abi::kAccessHugetlb;
  constexpr uint32_t kOptional = 0x3ff00000;  // IBV_ACCESS_OPTIONAL_RANGE: may be ignored
  if ((arguments.access & ~(kKnown | kOptional)) != 0) return EOPNOTSUPP;
  // ibv_reg_mr(3): "If IBV_ACCESS_REMOTE_WRITE or IBV_ACCESS_REMOTE_ATOMIC is set, then
  // IBV_ACCESS_LOCAL_WRITE must be set too".
  if ((arguments.access & (abi::kAccessRemoteWrite | abi::kAccessRemoteAtomic)) != 0 &&
      (arguments.access & abi::kAccessLocalWrite) == 0) {
    return EINVAL;
  }
  if (arguments.address + arguments.length < arguments.address ||
      arguments.iova + arguments.length < arguments.iova) {
    return EINVAL;
  }
  if (!mapped(fabric, client, arguments.address, arguments.length)) return EFAULT;
  MemoryRegion* region = fabric.mrs.create(client, pd->id);
  if (region == nullptr) return ENOMEM;
  region->address = arguments.address;
  region->length = arguments.length;
  region->iova = arguments.iova;
  region->access = arguments.access;
  ++pd->users;
  out.reg_mr.handle = region->id.value;
  out.reg_mr.lkey = region->lkey;
  out.reg_mr.rkey = region->rkey;
  return 0;
}

int dereg_mr(Fabric& fabric, ClientId client, uint32_t handle) {
  const MemoryRegion* region = fabric.mrs.find(MrId{handle});
  if (region == nullptr || region->client != client) return EINVAL;
  --fabric.pds.find(region->pd)->users;
  fabric.mrs.destroy(region->id);
  return 0;
}

int create_cq(Fabric& fabric, ClientId client, const Request::Body& in, Reply::Body& out) {
  const auto& arguments = in.create_cq;
  if (arguments.capacity == 0 || arguments.capacity > kMaxCqe) return EINVAL;
  if (arguments.comp_vector >= kCompVectors) return EINVAL;
  CompletionQueue* cq = fabric.cqs.create(client);
  if (cq == nullptr) return ENOMEM;
  cq->channel = {arguments.channel_inode};
  cq->user_handle = arguments.user_handle;
  cq->capacity = arguments.capacity;
  out.create_cq.handle = cq->id.value;
  out.create_cq.capacity = cq->capacity;
  return 0;
}

int destroy_cq(Fabric& fabric, ClientId client, uint32_t handle) {
  const CompletionQueue* cq = owned(fabric.cqs, handle, client);
  if (cq == nullptr) return EINVAL;
  if (cq->users != 0) return EBUSY;
  fabric.cqs.destroy(cq->id);
  return 0;
}

int create_qp(Fabric& fabric, ClientId client, const Request::Body& in, Reply::Body& out) {
  const auto& arguments = in.create_qp;
  ProtectionDomain* pd = owned(fabric.pds, arguments.pd, client);
  CompletionQueue* send_cq = owned(fabric.cqs, arguments.send_cq, client);
  CompletionQueue* recv_cq = owned(fabric.cqs, arguments.recv_cq, client);
  if (pd == nullptr || send_cq == nullptr || recv_cq == nullptr) return EINVAL;
  if (arguments.type != abi::QpType::kRc || arguments.srq != 0) return EOPNOTSUPP;
  const abi::QpCap& cap = arguments.cap;
  if (cap.max_send_wr > kMaxQpWr || cap.max_recv_wr > kMaxQpWr || cap.max_send_sge > kMaxSge ||
      cap.max_recv_sge > kMaxSge || cap.max_inline_data > kMaxInlineData) {
    return EINVAL;
  }
  QueuePair* qp = fabric.qps.create(client, fabric.clients.at(client));
  if (qp == nullptr) return ENOMEM;
  qp->type = arguments.type;
  qp->pd = pd->id;
  qp->send_cq = send_cq->id;
  qp->recv_cq = recv_cq->id;
  qp->user_handle = arguments.user_handle;
  qp->sq_sig_all = arguments.sq_sig_all != 0;
  qp->attr.cap = cap;
  qp->send.queue.configure(cap.max_send_wr,
                           abi::send_stride(cap.max_send_sge, cap.max_inline_data));
  qp->recv.queue.configure(cap.max_recv_wr, abi::recv_stride(cap.max_recv_sge));
  ++pd->users;
  ++send_cq->users;
  ++recv_cq->users;
  out.create_qp.qpn = qp->number.value;
  out.create_qp.generation = qp->generation;
  out.create_qp.cap = cap;
  return 0;
}

/// What follows from a change that was checked and made.
void enter_state(Fabric& fabric, QueuePair& qp, QpState from, QpState to, uint32_t mask) {
  switch (to) {
    case QpState::kReset:
      qp.reset();
      return;
    case QpState::kErr:
      if (from != QpState::kErr) fabric.enter_error(qp);
      return;
    case QpState::kRtr:
      if (from == QpState::kInit) {
        qp.recv.expected = wire::Psn(qp.attr.rq_psn);
        qp.recv.msn = 0;
      }
      break;
    case QpState::kRts:
      if (from == QpState::kRtr) {
        qp.state = to;
        requester::start(fabric, qp);
      } else if (from == QpState::kSqd) {
        qp.state = to;
        requester::resume(fabric, qp);
      }
      break;
    case QpState::kSqd:
      if (from == QpState::kRts) {
        qp.send.drained_reported = false;
        // "Enable SQD.drained async notification" belongs to this transition, not to the QP.
        if ((mask & abi::kAttrEnSqdAsyncNotify) == 0) qp.attr.en_sqd_async_notify = 0;
      }
      qp.state = to;
      requester::check_drained(fabric, qp);
      break;
    case QpState::kInit:
    case QpState::kSqe:
      break;
  }
  qp.state = to;
}

int modify_qp(Fabric& fabric, ClientId client, const Request::Body& in, Reply::Body& out) {
  const auto& arguments = in.modify_qp;
  QueuePair* qp = owned(fabric.qps, arguments.qpn, client);
  if (qp == nullptr) return EINVAL;
  const abi::QpAttr& attr = arguments.attr;
  const abi::Mtu active_mtu = fabric.device_of(*qp).config.active_mtu;
  if (const int error = check_attributes(qp->type, qp->state, attr, arguments.mask, active_mtu)) {
    return error;
  }
  if ((arguments.mask & abi::kAttrAv) != 0) {
    if (const int error = check_address_vector(fabric, qp->device, attr.ah_attr)) return error;
  }
  apply_attributes(attr, arguments.mask, qp->attr);
  if ((arguments.mask & abi::kAttrAv) != 0) {
    qp->path = resolve_path(fabric, qp->device, qp->attr.ah_attr, qp->number,
                            QpNumber{qp->attr.dest_qp_num});
  }
  if ((arguments.mask & abi::kAttrState) != 0) {
    enter_state(fabric, *qp, qp->state, static_cast<QpState>(attr.qp_state), arguments.mask);
  }
  out.modify_qp.state = static_cast<uint32_t>(qp->state);
  out.modify_qp.generation = qp->generation;
  return 0;
}

int query_qp(Fabric& fabric, ClientId client, uint32_t handle, Reply::Body& out) {
  const QueuePair* qp = owned(fabric.qps, handle, client);
  if (qp == nullptr) return EINVAL;
  out.query_qp.attr = qp->attr;
  out.query_qp.attr.qp_state = out.query_qp.attr.cur_qp_state = static_cast<uint32_t>(qp->state);
  out.query_qp.attr.sq_draining = qp->state == QpState::kSqd && !requester::drained(*qp) ? 1 : 0;
  out.query_qp.sq_sig_all = qp->sq_sig_all ? 1 : 0;
  out.query_qp.type = static_cast<uint32_t>(qp->type);
  return 0;
}

int destroy_qp(Fabric& fabric, ClientId client, uint32_t handle) {
  QueuePair* qp = owned(fabric.qps, handle, client);
  if (qp == nullptr) return EINVAL;
  fabric.destroy_qp(*qp);
  return 0;
}

int create_ah(Fabric& fabric, ClientId client, const Request::Body& in, uint32_t& handle) {
  ProtectionDomain* pd = owned(fabric.pds, in.create_ah.pd, client);
  if (pd == nullptr) return EINVAL;
  if (const int error =
          check_address_vector(fabric, fabric.clients.at(client), in.create_ah.attr)) {
    return error;
  }
  AddressHandle* ah = fabric.ahs.create(client, pd->id);
  if (ah == nullptr) return ENOMEM;
  ah->attr = in.create_ah.attr;
  ++pd->users;
  handle = ah->id.value;
  return 0;
}

int destroy_ah(Fabric& fabric, ClientId client, uint32_t handle) {
  const AddressHandle* ah = owned(fabric.ahs, handle, client);
  if (ah == nullptr) return EINVAL;
  --fabric.pds.find(ah->pd)->users;
  fabric.ahs.destroy(ah->id);
  return 0;
}

int dispatch(Fabric& fabric, ClientId client, const Request& request, Reply::Body& out) {
  const Request::Body& in = request.body;
  Device& device = fabric.device(fabric.clients.at(client));
  switch (request.op) {
    case Op::kQueryDevice:
      return query_device(device, out.device);
    case Op::kQueryPort:
      return query_port(device, in.query_port.port, out.port);
    case Op::kAllocPd:
      return alloc_pd(fabric, client, out.object.handle);
    case Op::kDeallocPd:
      return dealloc_pd(fabric, client, in.object.handle);
    case Op::kRegMr:
      return reg_mr(fabric, client, in, out);
    case Op::kDeregMr:
      return dereg_mr(fabric, client, in.object.handle);
    case Op::kCreateCq:
      return create_cq(fabric, client, in, out);
    case Op::kDestroyCq:
      return destroy_cq(fabric, client, in.object.handle);
    case Op::kCreateQp:
      return create_qp(fabric, client, in, out);
    case Op::kModifyQp:
      return modify_qp(fabric, client, in, out);
    case Op::kQueryQp:
      return query_qp(fabric, client, in.object.handle, out);
    case Op::kDestroyQp:
      return destroy_qp(fabric, client, in.object.handle);
    case Op::kCreateAh:
      return create_ah(fabric, client, in, out.object.handle);
    case Op::kDestroyAh:
      return destroy_ah(fabric, client, in.object.handle);
    case Op::kHello:
    case Op::kCreateChannel:
      break;
  }
  return EOPNOTSUPP;
}

}  // namespace

Reply execute(Fabric& fabric, ClientId client, const Request& request) {
  Reply reply{};
  reply.magic = abi::kMagic;
  reply.version = abi::kVersion;
  reply.op = request.op;
  reply.sequence = request.sequence;
  reply.error = dispatch(fabric, client, request, reply.body);
  return reply;
}

}  // namespace rocemu::engine
