// Polling and waiting: VipSendDone, VipRecvDone, VipCQDone, VipSendWait, VipRecvWait, VipCQWait.
#include "vipl/completion.h"

namespace rocemu::vipl {
namespace {

VIP_RETURN done(VIP_VI_HANDLE handle, WorkQueue Vi::*queue, VIP_DESCRIPTOR** descriptor) {
  return guarded([&] {
    Access<Vi> vi(vis, handle);
    if (!vi || descriptor == nullptr) return VIP_INVALID_PARAMETER;
    WorkQueue& wanted = (*vi).*queue;
    if (wanted.published == 0) drain(*wanted.cq);
    return take_descriptor(wanted, descriptor);
  });
}

VIP_RETURN wait(VIP_VI_HANDLE handle, WorkQueue Vi::*queue, VIP_ULONG timeout,
                VIP_DESCRIPTOR** descriptor) {
  return guarded([&] {
    Access<Vi> vi(vis, handle);
    if (!vi || descriptor == nullptr) return VIP_INVALID_PARAMETER;
    WorkQueue& wanted = (*vi).*queue;
    // The descriptors of a work queue with a completion queue are announced only by the completion
    // queue.
    if (wanted.cq->visible) return VIP_ERROR_RESOURCE;
    const std::shared_ptr<Cq> cq = wanted.cq;
    const bool likely_there = !wanted.recv;  // between a send and its wait programs do other work
    return wait_for(vi.lock, *cq, deadline_after(timeout), likely_there,
                    [&]() -> std::optional<VIP_RETURN> {
                      if (vi->dead) return VIP_INVALID_PARAMETER;
                      const VIP_RETURN result = take_descriptor(wanted, descriptor);
                      if (result == VIP_NOT_DONE) return std::nullopt;
                      return result;
                    });
  });
}

bool take_entry(Cq& cq, VIP_VI_HANDLE* vi, VIP_BOOLEAN* recv) {
  if (cq.entries.empty()) return false;
  *vi = cq.entries.front().vi->handle;
  *recv = cq.entries.front().recv ? VIP_TRUE : VIP_FALSE;
  cq.entries.pop_front();
  return true;
}

}  // namespace
}  // namespace rocemu::vipl

using namespace rocemu::vipl;

VIP_RETURN VipSendDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR** DescriptorPtr) {
  return done(ViHandle, &Vi::send, DescriptorPtr);
}

VIP_RETURN VipRecvDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR** DescriptorPtr) {
  return done(ViHandle, &Vi::recv, DescriptorPtr);
}

VIP_RETURN VipSendWait(VIP_VI_HANDLE ViHandle, VIP_ULONG TimeOut, VIP_DESCRIPTOR** DescriptorPtr) {
  return rocemu::vipl::wait(ViHandle, &Vi::send, TimeOut, DescriptorPtr);
}

VIP_RETURN VipRecvWait(VIP_VI_HANDLE ViHandle, VIP_ULONG TimeOut, VIP_DESCRIPTOR** DescriptorPtr) {
  return rocemu::vipl::wait(ViHandle, &Vi::recv, TimeOut, DescriptorPtr);
}

VIP_RETURN VipCQDone(VIP_CQ_HANDLE CQHandle, VIP_VI_HANDLE* ViHandle, VIP_BOOLEAN* RecvQueue) {
  return guarded([&] {
    Access<Cq> cq(cqs, CQHandle);
    if (!cq || ViHandle == nullptr || RecvQueue == nullptr) return VIP_INVALID_PARAMETER;
    if (cq->entries.empty()) drain(*cq);
    return take_entry(*cq, ViHandle, RecvQueue) ? VIP_SUCCESS : VIP_NOT_DONE;
  });
}

VIP_RETURN VipCQWait(VIP_CQ_HANDLE CQHandle, VIP_ULONG Timeout, VIP_VI_HANDLE* ViHandle,
                     VIP_BOOLEAN* RecvQueue) {
  return guarded([&] {
    Access<Cq> cq(cqs, CQHandle);
    if (!cq || ViHandle == nullptr || RecvQueue == nullptr) return VIP_INVALID_PARAMETER;
    return wait_for(cq.lock, *cq, deadline_after(Timeout), false,
                    [&]() -> std::optional<VIP_RETURN> {
                      if (take_entry(*cq, ViHandle, RecvQueue)) return VIP_SUCCESS;
                      return std::nullopt;
                    });
  });
}
