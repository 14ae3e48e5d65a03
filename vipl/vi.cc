// VipCreateVi, VipDestroyVi, VipQueryVi, VipSetViAttributes.
#include <utility>

#include "vipl/completion.h"
#include "vipl/handlers.h"
#include "vipl/queue_pair.h"

namespace rocemu::vipl {

Handles<Vi> vis(2);

namespace {

VIP_RETURN check(const Nic& nic, const VIP_VI_ATTRIBUTES& attributes, std::shared_ptr<Ptag>* ptag) {
  const VIP_RELIABILITY_LEVEL level = attributes.ReliabilityLevel;
  if (level != VIP_SERVICE_UNRELIABLE && level != VIP_SERVICE_RELIABLE_DELIVERY &&
      level != VIP_SERVICE_RELIABLE_RECEPTION) {
    return VIP_INVALID_RELIABILITY_LEVEL;
  }
  ibv_port_attr port{};
  if (ibv_query_port(nic.context, kPort, &port) != 0) return VIP_ERROR_RESOURCE;
  if (attributes.MaxTransferSize > port.max_msg_sz) return VIP_INVALID_MTU;
  if (attributes.QoS != nullptr) return VIP_INVALID_QOS;  // VIPL 1.0 does not define it
  *ptag = find_ptag(nic, attributes.Ptag);
  if (*ptag == nullptr) return VIP_INVALID_PTAG;
  if (attributes.EnableRdmaRead && level == VIP_SERVICE_UNRELIABLE) return VIP_INVALID_RDMAREAD;
  return VIP_SUCCESS;
}

/// Attaches the work queue to its CQ: that of the handle, or the VI's own, which is created when
/// the first queue needs it.
VIP_RETURN attach(Vi& vi, WorkQueue& queue, VIP_CQ_HANDLE handle, std::shared_ptr<Cq>* own) {
  if (handle != nullptr) {
    queue.cq = cqs.find(handle);
    const bool right = queue.cq != nullptr && !queue.cq->dead && queue.cq->nic == vi.nic;
    if (!right) queue.cq.reset();
    return right ? VIP_SUCCESS : VIP_INVALID_PARAMETER;
  }
  if (*own == nullptr) *own = make_cq(vi.nic, 2 * kMaxDescriptors, false);
  queue.cq = *own;
  return queue.cq == nullptr ? VIP_ERROR_RESOURCE : VIP_SUCCESS;
}

void forget_entries(Vi& vi) {
  for (WorkQueue* queue : {&vi.send, &vi.recv}) {
    auto& entries = queue->cq->entries;
    std::erase_if(entries, [&](const Cq::Entry& entry) { return entry.vi.get() == &vi; });
    --queue->cq->users;
    queue->cq->registrations -= static_cast<unsigned>(queue->handlers.size());
    queue->handlers.clear();
  }
  for (WorkQueue* queue : {&vi.send, &vi.recv}) {
    if (!queue->cq->visible) close_cq(*queue->cq);
  }
}

}  // namespace
}  // namespace rocemu::vipl

using namespace rocemu::vipl;

VIP_RETURN VipCreateVi(VIP_NIC_HANDLE NicHandle, VIP_VI_ATTRIBUTES* ViAttribs,
                       VIP_CQ_HANDLE SendCQHandle, VIP_CQ_HANDLE RecvCQHandle,
                       VIP_VI_HANDLE* ViHandle) {
  return guarded([&] {
    Access<Nic> nic(nics, NicHandle);
    if (!nic || ViAttribs == nullptr || ViHandle == nullptr) return VIP_INVALID_PARAMETER;
    const auto vi = std::make_shared<Vi>();
    VIP_RETURN result = check(*nic, *ViAttribs, &vi->ptag);
    if (result != VIP_SUCCESS) return result;
    vi->nic = nic.object;
    vi->attributes = *ViAttribs;
    vi->recv.recv = true;
    std::shared_ptr<Cq> own;
    result = attach(*vi, vi->send, SendCQHandle, &own);
    if (result == VIP_SUCCESS) result = attach(*vi, vi->recv, RecvCQHandle, &own);
    if (result == VIP_SUCCESS && !renew_qp(*vi)) result = VIP_ERROR_RESOURCE;
    if (result != VIP_SUCCESS) {
      destroy_qp(*vi);
      if (own != nullptr) close_cq(*own);
      return result;
    }
    ++vi->ptag->users;
    ++vi->send.cq->users;
    ++vi->recv.cq->users;
    *ViHandle = vi->handle = vis.add(vi);
    return VIP_SUCCESS;
  });
}

VIP_RETURN VipDestroyVi(VIP_VI_HANDLE ViHandle) {
  return guarded([&] {
    Access<Vi> vi(vis, ViHandle);
    if (!vi) return VIP_INVALID_PARAMETER;
    if (vi->state != VIP_STATE_IDLE || vi->peer == Vi::Peer::kPending || !vi->send.posted.empty() ||
        !vi->recv.posted.empty()) {
      return VIP_ERROR_RESOURCE;
    }
    destroy_qp(*vi);
    forget_entries(*vi);
    --vi->ptag->users;
    vi->dead = true;
    vis.remove(ViHandle);
    vi->nic->changed.notify_all();
    wait_for_handler(*vi->nic, vi.lock, *vi);
    return VIP_SUCCESS;
  });
}

VIP_RETURN VipQueryVi(VIP_VI_HANDLE ViHandle, VIP_VI_STATE* State, VIP_VI_ATTRIBUTES* ViAttribs,
                      VIP_BOOLEAN* ViSendQEmpty, VIP_BOOLEAN* ViRecvQEmpty) {
  return guarded([&] {
    Access<Vi> vi(vis, ViHandle);
    if (!vi || State == nullptr || ViAttribs == nullptr || ViSendQEmpty == nullptr ||
        ViRecvQEmpty == nullptr) {
      return VIP_INVALID_PARAMETER;
    }
    drain(*vi->send.cq);  // an error that has already arrived counts
    drain(*vi->recv.cq);
    *State = vi->state;
    *ViAttribs = vi->attributes;
    *ViSendQEmpty = vi->send.posted.empty() ? VIP_TRUE : VIP_FALSE;
    *ViRecvQEmpty = vi->recv.posted.empty() ? VIP_TRUE : VIP_FALSE;
    return VIP_SUCCESS;
  });
}

VIP_RETURN VipSetViAttributes(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES* ViAttribs) {
  return guarded([&] {
    Access<Vi> vi(vis, ViHandle);
    if (!vi || ViAttribs == nullptr) return VIP_INVALID_PARAMETER;
    if (vi->state != VIP_STATE_IDLE) return VIP_INVALID_STATE;
    std::shared_ptr<Ptag> ptag;
    const VIP_RETURN result = check(*vi->nic, *ViAttribs, &ptag);
    if (result != VIP_SUCCESS) return result;
    // A VI whose type or protection tag changes needs another QP, because the type and the PD of a
    // QP cannot change.
    const bool other_qp = vi->qp == nullptr || ptag != vi->ptag ||
                          ViAttribs->ReliabilityLevel != vi->attributes.ReliabilityLevel;
    const VIP_VI_ATTRIBUTES old = std::exchange(vi->attributes, *ViAttribs);
    std::swap(vi->ptag, ptag);
    if (other_qp ? renew_qp(*vi) : set_access(*vi)) {
      --ptag->users;
      ++vi->ptag->users;
      return VIP_SUCCESS;
    }
    vi->attributes = old;
    std::swap(vi->ptag, ptag);
    return VIP_ERROR_RESOURCE;
  });
}
