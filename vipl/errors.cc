// VipErrorCallback, and the asynchronous events of the device, which become its errors
#include "vipl/errors.h"

#include <cstdio>

#include "vipl/completion.h"
#include "vipl/handlers.h"

namespace rocemu::vipl {
namespace {

const char* name_of(VIP_ERROR_CODE code) {
  switch (code) {
    case VIP_ERROR_POST_DESC:
      return "a descriptor was posted whose address or memory handle is wrong";
    case VIP_ERROR_CONN_LOST:
      return "the connection was lost";
    case VIP_ERROR_RECVQ_EMPTY:
      return "a message arrived, but no receive was posted";
    case VIP_ERROR_VI_OVERRUN:
      return "too many descriptors were posted";
    case VIP_ERROR_RDMAW_PROT:
      return "the peer's RDMA write was not allowed";
    case VIP_ERROR_RDMAW_DATA:
      return "the peer's RDMA write was damaged";
    case VIP_ERROR_RDMAW_ABORT:
      return "the peer's RDMA write arrived only in part";
    case VIP_ERROR_RDMAR_PROT:
      return "the peer's RDMA read was not allowed";
    case VIP_ERROR_COMP_PROT:
      return "a descriptor completed whose memory is not registered any more";
    case VIP_ERROR_RDMA_TRANSPORT:
      return "the peer broke the protocol";
    case VIP_ERROR_CATASTROPHIC:
      return "the NIC failed";
  }
  return "unknown error";
}

void log_error(VIP_PVOID, VIP_ERROR_DESCRIPTOR* error) {
  std::fprintf(stderr, "vipl: %s (VIP_ERROR_CODE %d, VI %p, CQ %p, descriptor %p)\n",
               name_of(error->ErrorCode), error->ErrorCode, error->ViHandle, error->CQHandle,
               static_cast<void*>(error->DescriptorPtr));
}

/// Returns the error for a peer's RDMA request that was refused. Verbs do not report which
/// operation it was, but the access rights show it in part: an operation that the QP forbids is an
/// invalid request, and one that the memory forbids is an access error.
VIP_ERROR_CODE refused_rdma(const Vi& vi, bool by_memory) {
  const bool read = vi.attributes.EnableRdmaRead != 0;
  const bool write = vi.attributes.EnableRdmaWrite != 0;
  if (by_memory) return read && !write ? VIP_ERROR_RDMAR_PROT : VIP_ERROR_RDMAW_PROT;
  if (!write) return VIP_ERROR_RDMAW_PROT;
  return read ? VIP_ERROR_RDMA_TRANSPORT : VIP_ERROR_RDMAR_PROT;
}

void handle(Nic& nic, ibv_event_type type, uint32_t qpn, const ibv_cq* of) {
  const auto found = nic.vi_of_qp.find(qpn);
  Vi* vi = found == nic.vi_of_qp.end() ? nullptr : found->second;
  switch (type) {
    case IBV_EVENT_COMM_EST:  // the last message of the connection's setup may be lost
      if (vi != nullptr && vi->connection != nullptr) rdma_notify(vi->connection->id, type);
      return;
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_FATAL:
      if (vi == nullptr) return;
      report(nic, VIP_RESOURCE_VI,
             type == IBV_EVENT_QP_FATAL ? VIP_ERROR_CATASTROPHIC
                                        : refused_rdma(*vi, type == IBV_EVENT_QP_ACCESS_ERR),
             vi);
      drain(*vi->send.cq);
      drain(*vi->recv.cq);
      break_connection(*vi, VIP_ERROR_CONN_LOST);
      return;
    case IBV_EVENT_CQ_ERR:
      for (const auto& [id, weak] : nic.cqs) {
        const auto cq = weak.lock();
        if (cq != nullptr && cq->cq == of) {
          report(nic, VIP_RESOURCE_CQ, VIP_ERROR_CATASTROPHIC, nullptr,
                 cq->visible ? cq.get() : nullptr);
        }
      }
      return;
    case IBV_EVENT_DEVICE_FATAL: {
      report(nic, VIP_RESOURCE_NIC, VIP_ERROR_CATASTROPHIC);
      std::vector<Vi*> all;
      for (const auto& [number, each] : nic.vi_of_qp) all.push_back(each);
      for (Vi* each : all) {  // no completion will report this
        break_connection(*each, VIP_ERROR_CONN_LOST);
        if (each->state != VIP_STATE_ERROR) continue;
        flush(*each, each->send);
        flush(*each, each->recv);
      }
      return;
    }
    default:
      return;  // VIPL has no errors for the state of a port
  }
}

}  // namespace

void report(Nic& nic, VIP_RESOURCE_CODE resource, VIP_ERROR_CODE code, Vi* vi, Cq* cq,
            VIP_DESCRIPTOR* descriptor, uint32_t operation) {
  VIP_ERROR_DESCRIPTOR error{};
  error.NicHandle = nic.handle;
  error.ViHandle = vi != nullptr ? vi->handle : nullptr;
  error.CQHandle = cq != nullptr ? cq->handle : nullptr;
  error.DescriptorPtr = descriptor;
  error.OpCode = operation;
  error.ResourceCode = resource;
  error.ErrorCode = code;
  // The handler that is registered at the time of the call is used: a program that removed its
  // handler is not called.
  call_later(nic, {nullptr, [&nic, error]() mutable {
                     Lock lock(nic.mutex);
                     const VIP_ERROR_HANDLER handler =
                         nic.error_handler != nullptr ? nic.error_handler : log_error;
                     const VIP_PVOID context = nic.error_context;
                     nic.in_error_handler = true;
                     lock.unlock();
                     handler(context, &error);
                     lock.lock();
                     nic.in_error_handler = false;
                     nic.changed.notify_all();
                   }});
}

void read_device_events(Nic& nic) {
  ibv_async_event event{};
  while (ibv_get_async_event(nic.context, &event) == 0) {
    const ibv_event_type type = event.event_type;
    uint32_t qpn = 0;
    const ibv_cq* cq = nullptr;
    switch (type) {
      case IBV_EVENT_QP_FATAL:
      case IBV_EVENT_QP_REQ_ERR:
      case IBV_EVENT_QP_ACCESS_ERR:
      case IBV_EVENT_COMM_EST:
      case IBV_EVENT_SQ_DRAINED:
        qpn = event.element.qp->qp_num;
        break;
      case IBV_EVENT_CQ_ERR:
        cq = event.element.cq;
        break;
      default:
        break;
    }
    // The event is acknowledged at once: a thread that destroys the QP waits for this, and may hold
    // the lock.
    ibv_ack_async_event(&event);
    const Lock lock(nic.mutex);
    if (!nic.dead) handle(nic, type, qpn, cq);
  }
}

}  // namespace rocemu::vipl

using namespace rocemu::vipl;

VIP_RETURN VipErrorCallback(VIP_NIC_HANDLE NicHandle, VIP_PVOID Context,
                            VIP_ERROR_HANDLER Handler) {
  return guarded([&] {
    Access<Nic> nic(nics, NicHandle);
    if (!nic) return VIP_INVALID_PARAMETER;
    nic->error_handler = Handler;
    nic->error_context = Context;
    // After this function returns, the program may release what the old handler uses, so it waits
    // until that handler has ended, unless the handler itself makes this call.
    if (std::this_thread::get_id() != nic->handler_thread.get_id()) {
      nic->changed.wait(nic.lock, [&] { return !nic->in_error_handler; });
    }
    return VIP_SUCCESS;
  });
}
