#include "vipl/completion.h"

#include <arpa/inet.h>

#include "vipl/errors.h"
#include "vipl/queue_pair.h"
#include "vipl/status.h"

namespace rocemu::vipl {
namespace {

/// Returns the descriptor's control segment; null if its memory is no longer registered.
VIP_CONTROL_SEGMENT* control_of(Vi& vi, const Posted& posted) {
  const auto region = vi.nic->regions.find(posted.handle);
  const bool there = region != vi.nic->regions.end() &&
                     region->second.covers(posted.descriptor, sizeof(VIP_CONTROL_SEGMENT));
  return there ? &posted.descriptor->CS : nullptr;
}

void publish(Vi& vi, WorkQueue& queue, Posted& posted) {
  posted.status |= VIP_STATUS_DONE;
  if (VIP_CONTROL_SEGMENT* control = control_of(vi, posted)) {
    control->Length = posted.length;
    if (posted.has_immediate) control->ImmediateData = posted.immediate;
    control->Status = posted.status;
  } else {
    report(*vi.nic, VIP_RESOURCE_DESCRIPTOR, VIP_ERROR_COMP_PROT, &vi, nullptr, posted.descriptor,
           posted.status & VIP_STATUS_OP_MASK);
  }
  ++queue.published;
  if (queue.cq->visible) {
    const auto self = vis.find(vi.handle);
    if (self != nullptr) queue.cq->entries.push_back({self, queue.recv});
  }
  const uint32_t errors = posted.status & VIP_STATUS_ERROR_MASK;
  if (errors == 0 || errors == VIP_STATUS_DESC_FLUSHED_ERROR || vi.state != VIP_STATE_CONNECTED) {
    return;
  }
  // An unreliable VI stays connected if its QP does: errors of the VI's descriptors do not end the
  // connection.
  if (!vi.reliable()) {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    if (ibv_query_qp(vi.qp, &attr, IBV_QP_STATE, &init) == 0 && attr.qp_state == IBV_QPS_RTS) {
      return;
    }
  }
  break_connection(vi, VIP_ERROR_CONN_LOST, posted.descriptor);
}

void complete(Nic& nic, const ibv_wc& wc) {
  const auto found = nic.vi_of_qp.find(wc.qp_num);
  if (found == nic.vi_of_qp.end()) return;
  Vi& vi = *found->second;
  WorkQueue& queue = (wc.wr_id & 1) != 0 ? vi.recv : vi.send;
  const uint64_t serial = wc.wr_id >> 1;
  // A completion whose serial number is not in the queue belongs to an earlier QP with the same
  // number.
  if (serial < queue.first_serial || serial - queue.first_serial >= queue.posted.size()) return;
  Posted& posted = queue.posted[serial - queue.first_serial];
  if (!posted.on_qp || posted.finished) return;
  posted.finished = true;
  if (queue.recv && wc.status == IBV_WC_SUCCESS) {
    posted.length = wc.byte_len;
    if (wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM) posted.status = VIP_STATUS_OP_REMOTE_RDMA_WRITE;
    if ((wc.wc_flags & IBV_WC_WITH_IMM) != 0) {
      posted.status |= VIP_STATUS_IMMEDIATE;
      posted.has_immediate = true;
      posted.immediate = ntohl(wc.imm_data);
    }
  }
  if (wc.status != IBV_WC_SUCCESS) {
    posted.status |= error_bits(wc.status, posted.status & VIP_STATUS_OP_MASK);
    posted.length = 0;
  }
  advance(vi, queue);
}

}  // namespace

void drain(Cq& cq) {
  if (cq.dead) return;
  constexpr int kAtOnce = 16;
  ibv_wc completions[kAtOnce];
  for (int count = kAtOnce; count == kAtOnce;) {
    count = ibv_poll_cq(cq.cq, kAtOnce, completions);
    for (int i = 0; i < count; ++i) complete(*cq.nic, completions[i]);
  }
}

void advance(Vi& vi, WorkQueue& queue) {
  const size_t before = queue.published;
  while (queue.published < queue.posted.size() && queue.posted[queue.published].finished) {
    publish(vi, queue, queue.posted[queue.published]);
  }
  if (queue.published == before) return;
  wake_waiters(*queue.cq);
  serve(vi, queue);
  serve(*queue.cq);
}

void flush(Vi& vi, WorkQueue& queue) {
  for (Posted& posted : queue.posted) {
    if (posted.finished) continue;
    posted.finished = true;
    posted.status |= VIP_STATUS_DESC_FLUSHED_ERROR;
    posted.length = 0;
  }
  advance(vi, queue);
}

void break_connection(Vi& vi, VIP_ERROR_CODE code, VIP_DESCRIPTOR* descriptor) {
  if (vi.state != VIP_STATE_CONNECTED) return;
  // The descriptors are not flushed here: the QP, in the error state, completes messages that
  // arrived before, and then flushes the other work requests.
  vi.state = VIP_STATE_ERROR;
  to_error(vi);
  if (vi.connection != nullptr) rdma_disconnect(vi.connection->id);
  report(*vi.nic, VIP_RESOURCE_VI, code, &vi, nullptr, descriptor);
  vi.nic->changed.notify_all();
}

VIP_RETURN take_descriptor(WorkQueue& queue, VIP_DESCRIPTOR** descriptor) {
  if (queue.posted.empty()) {
    *descriptor = nullptr;
    return VIP_DESCRIPTOR_ERROR;
  }
  if (queue.published == 0) return VIP_NOT_DONE;
  const Posted& head = queue.posted.front();
  const bool failed = (head.status & VIP_STATUS_ERROR_MASK) != 0;
  *descriptor = head.descriptor;
  queue.posted.pop_front();
  ++queue.first_serial;
  --queue.published;
  if (queue.posted.empty()) queue.broken = false;
  return failed ? VIP_DESCRIPTOR_ERROR : VIP_SUCCESS;
}

}  // namespace rocemu::vipl
