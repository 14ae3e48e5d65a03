#include "vipl/queue_pair.h"

#include <arpa/inet.h>

#include <array>
#include <cerrno>

namespace rocemu::vipl {
namespace {

int access_of(const Vi& vi) {
  int access = 0;
  if (vi.attributes.EnableRdmaWrite) access |= IBV_ACCESS_REMOTE_WRITE;
  if (vi.attributes.EnableRdmaRead) access |= IBV_ACCESS_REMOTE_READ;
  return access;
}

/// Returns the data segments without empty ones, which some devices take for 2^31 bytes.
int read_segments(const Vi& vi, const VIP_DESCRIPTOR& descriptor, unsigned first, ibv_sge* sges) {
  int count = 0;
  for (unsigned i = first; i < descriptor.CS.SegCount; ++i) {
    const VIP_DATA_SEGMENT& segment = descriptor.DS[i].Local;
    if (segment.Length == 0) continue;
    const auto region = vi.nic->regions.find(segment.Handle);
    const uint32_t lkey = region == vi.nic->regions.end() ? 0 : region->second.mr->lkey;
    sges[count++] = {segment.Data.AddressBits, segment.Length, lkey};
  }
  return count;
}

bool post_receives(Vi& vi) {
  uint64_t serial = vi.recv.first_serial;
  for (const Posted& posted : vi.recv.posted) {
    if (!posted.finished && post_to_qp(vi, vi.recv, serial, posted) != 0) return false;
    ++serial;
  }
  return true;
}

}  // namespace

bool set_access(Vi& vi) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = kPort;
  attr.qp_access_flags = static_cast<unsigned>(access_of(vi));
  return ibv_modify_qp(vi.qp, &attr,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0;
}

void destroy_qp(Vi& vi) {
  if (vi.qp == nullptr) return;
  vi.nic->vi_of_qp.erase(vi.qp->qp_num);
  ibv_destroy_qp(vi.qp);
  vi.qp = nullptr;
}

bool ensure_qp(Vi& vi) {
  return vi.qp != nullptr || renew_qp(vi);
}

bool renew_qp(Vi& vi) {
  destroy_qp(vi);
  ibv_qp_init_attr init{};
  init.qp_type = vi.reliable() ? IBV_QPT_RC : IBV_QPT_UC;
  init.send_cq = vi.send.cq->cq;
  init.recv_cq = vi.recv.cq->cq;
  init.cap = {kMaxDescriptors, kMaxDescriptors, kMaxDataSegments, kMaxDataSegments, 0};
  init.sq_sig_all = 1;  // every descriptor must be marked complete
  vi.qp = ibv_create_qp(vi.ptag->pd, &init);
  if (vi.qp == nullptr) return false;
  vi.nic->vi_of_qp[vi.qp->qp_num] = &vi;
  const bool usable = set_access(vi) && post_receives(vi);
  if (!usable) destroy_qp(vi);
  return usable;
}

bool make_ready(Vi& vi, rdma_cm_id* id) {
  constexpr int kUcRtr =
      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  constexpr int kUcRts = IBV_QP_STATE | IBV_QP_SQ_PSN;
  ibv_qp_attr attr{};
  int mask = 0;
  attr.qp_state = IBV_QPS_RTR;
  if (rdma_init_qp_attr(id, &attr, &mask) != 0) return false;
  // rdma_cm supports reliable connections only; for an unreliable connection the other attributes
  // have no meaning.
  if (!vi.reliable()) mask &= kUcRtr;
  if (ibv_modify_qp(vi.qp, &attr, mask) != 0) return false;
  attr = {};
  mask = 0;
  attr.qp_state = IBV_QPS_RTS;
  if (rdma_init_qp_attr(id, &attr, &mask) != 0) return false;
  if (!vi.reliable()) mask &= kUcRts;
  attr.timeout = 14;  // 67 ms, eight times: half a second until a peer counts as lost
  attr.retry_cnt = 7;
  attr.rnr_retry = 0;  // a message without a receive ends the connection, as in VIPL
  return ibv_modify_qp(vi.qp, &attr, mask) == 0;
}

void to_error(Vi& vi) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(vi.qp, &attr, IBV_QP_STATE);
}

int post_to_qp(Vi& vi, WorkQueue& queue, uint64_t serial, const Posted& posted) {
  const VIP_DESCRIPTOR& descriptor = *posted.descriptor;
  const uint16_t control = descriptor.CS.Control;
  const uint16_t operation = control & VIP_CONTROL_OP_MASK;
  std::array<ibv_sge, kMaxDataSegments + 1> sges;
  const unsigned first = operation == VIP_CONTROL_OP_SENDRECV ? 0 : 1;
  const int count = read_segments(vi, descriptor, first, sges.data());
  if (queue.recv) {
    ibv_recv_wr wr{};
    wr.wr_id = serial << 1 | 1;
    wr.sg_list = sges.data();
    wr.num_sge = count;
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(vi.qp, &wr, &bad);
  }
  ibv_send_wr wr{};
  wr.wr_id = serial << 1;
  wr.sg_list = sges.data();
  wr.num_sge = count;
  const bool immediate = (control & VIP_CONTROL_IMMEDIATE) != 0;
  wr.imm_data = htonl(descriptor.CS.ImmediateData);
  if (operation == VIP_CONTROL_OP_SENDRECV) {
    wr.opcode = immediate ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
  } else {
    wr.opcode = operation == VIP_CONTROL_OP_RDMAREAD ? IBV_WR_RDMA_READ
                : immediate                          ? IBV_WR_RDMA_WRITE_WITH_IMM
                                                     : IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = descriptor.DS[0].Remote.Data.AddressBits;
    wr.wr.rdma.rkey = descriptor.DS[0].Remote.Handle;
  }
  // Both fences have the same effect: the descriptor waits until earlier RDMA READs are complete.
  if ((control & VIP_CONTROL_QFENCE) != 0) wr.send_flags |= IBV_SEND_FENCE;
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(vi.qp, &wr, &bad);
}

}  // namespace rocemu::vipl
