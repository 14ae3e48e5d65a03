// VipPostSend and VipPostRecv: check a descriptor and post it.
#include "vipl/completion.h"
#include "vipl/errors.h"
#include "vipl/queue_pair.h"

namespace rocemu::vipl {
namespace {

constexpr size_t kControlBytes = sizeof(VIP_CONTROL_SEGMENT);

uint32_t operation_of(const WorkQueue& queue, uint16_t control) {
  if (queue.recv) return VIP_STATUS_OP_RECEIVE;
  switch (control & VIP_CONTROL_OP_MASK) {
    case VIP_CONTROL_OP_RDMAWRITE:
      return VIP_STATUS_OP_RDMA_WRITE;
    case VIP_CONTROL_OP_RDMAREAD:
      return VIP_STATUS_OP_RDMA_READ;
    default:
      return VIP_STATUS_OP_SEND;
  }
}

/// Returns whether the VI may read the descriptor's memory.
bool is_readable(const Vi& vi, const VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE handle) {
  if (reinterpret_cast<uintptr_t>(descriptor) % VIP_DESCRIPTOR_ALIGNMENT != 0) return false;
  const auto found = vi.nic->regions.find(handle);
  if (found == vi.nic->regions.end()) return false;
  const Region& region = found->second;
  if (region.ptag != vi.ptag || !region.covers(descriptor, kControlBytes)) return false;
  const size_t segments = descriptor->CS.SegCount * sizeof(VIP_DESCRIPTOR_SEGMENT);
  // Too many segments are a format error, whatever memory they would be in.
  return descriptor->CS.SegCount > kMaxDataSegments + 1 ||
         region.covers(descriptor, kControlBytes + segments);
}

/// Checks a descriptor, and stores its number of bytes in `total`. Returns the error bits if the
/// descriptor must not reach the QP, else 0.
uint32_t check(const Vi& vi, const WorkQueue& queue, const VIP_DESCRIPTOR& descriptor,
               uint64_t* total) {
  const uint16_t control = descriptor.CS.Control;
  const uint16_t operation = control & VIP_CONTROL_OP_MASK;
  const bool rdma = operation != VIP_CONTROL_OP_SENDRECV;
  const unsigned segments = descriptor.CS.SegCount;
  const unsigned first = rdma ? 1 : 0;
  if (operation == VIP_CONTROL_OP_RESERVED || (control & VIP_CONTROL_RESERVED) != 0) {
    return VIP_STATUS_FORMAT_ERROR;
  }
  if (queue.recv && control != 0) return VIP_STATUS_FORMAT_ERROR;
  if (segments < first || segments > kMaxDataSegments + first) return VIP_STATUS_FORMAT_ERROR;
  if (operation == VIP_CONTROL_OP_RDMAREAD &&
      (!vi.reliable() || (control & VIP_CONTROL_IMMEDIATE) != 0)) {
    return VIP_STATUS_FORMAT_ERROR;
  }
  for (unsigned i = first; i < segments; ++i) {
    const VIP_DATA_SEGMENT& segment = descriptor.DS[i].Local;
    *total += segment.Length;
    if (segment.Length != 0 && !vi.nic->regions.contains(segment.Handle)) {
      return VIP_STATUS_PROTECTION_ERROR;
    }
  }
  // MaxTransferSize limits only sends: receive buffers may be longer.
  const bool too_long = !queue.recv && *total > vi.attributes.MaxTransferSize;
  return too_long ? VIP_STATUS_LENGTH_ERROR : 0;
}

/// Links the queue's last descriptor to the new one.
void link_behind_last(Vi& vi, const WorkQueue& queue, const Posted& posted) {
  posted.descriptor->CS.Next.AddressBits = 0;
  posted.descriptor->CS.NextHandle = 0;
  if (queue.posted.empty()) return;
  const Posted& last = queue.posted.back();
  const auto region = vi.nic->regions.find(last.handle);
  if (region == vi.nic->regions.end() || !region->second.covers(last.descriptor, kControlBytes)) {
    return;
  }
  last.descriptor->CS.Next.AddressBits = reinterpret_cast<uintptr_t>(posted.descriptor);
  last.descriptor->CS.NextHandle = posted.handle;
}

VIP_RETURN post(Vi& vi, WorkQueue& queue, VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE handle) {
  if (!is_readable(vi, descriptor, handle)) {
    report(*vi.nic, VIP_RESOURCE_DESCRIPTOR, VIP_ERROR_POST_DESC, &vi, nullptr, descriptor);
    return VIP_INVALID_PARAMETER;
  }
  const uint32_t operation = operation_of(queue, descriptor->CS.Control);
  if (queue.posted.size() >= kMaxDescriptors) {
    report(*vi.nic, VIP_RESOURCE_VI, VIP_ERROR_VI_OVERRUN, &vi, nullptr, descriptor, operation);
    return VIP_ERROR_RESOURCE;
  }
  Posted posted;
  posted.descriptor = descriptor;
  posted.handle = handle;
  posted.status = operation;
  descriptor->CS.Status = 0;
  uint64_t total = 0;
  const uint32_t errors = check(vi, queue, *descriptor, &total);
  const bool open = queue.recv ? vi.state != VIP_STATE_ERROR : vi.state == VIP_STATE_CONNECTED;
  const uint64_t serial = queue.first_serial + queue.posted.size();
  if (!open || queue.broken) {
    posted.finished = true;
    posted.status |= VIP_STATUS_DESC_FLUSHED_ERROR;
  } else if (errors != 0) {
    posted.finished = true;
    posted.status |= errors;
    // Later descriptors must not overtake the end of the connection.
    queue.broken = vi.reliable() && vi.state == VIP_STATE_CONNECTED;
  } else {
    if (!queue.recv) posted.length = static_cast<uint32_t>(total);
    posted.on_qp = true;
    if (!ensure_qp(vi) || post_to_qp(vi, queue, serial, posted) != 0) return VIP_ERROR_RESOURCE;
  }
  link_behind_last(vi, queue, posted);
  queue.posted.push_back(posted);
  advance(vi, queue);
  return VIP_SUCCESS;
}

}  // namespace
}  // namespace rocemu::vipl

using namespace rocemu::vipl;

VIP_RETURN VipPostSend(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* DescriptorPtr,
                       VIP_MEM_HANDLE MemoryHandle) {
  return guarded([&] {
    Access<Vi> vi(vis, ViHandle);
    if (!vi || DescriptorPtr == nullptr) return VIP_INVALID_PARAMETER;
    return post(*vi, vi->send, DescriptorPtr, MemoryHandle);
  });
}

VIP_RETURN VipPostRecv(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* DescriptorPtr,
                       VIP_MEM_HANDLE MemoryHandle) {
  return guarded([&] {
    Access<Vi> vi(vis, ViHandle);
    if (!vi || DescriptorPtr == nullptr) return VIP_INVALID_PARAMETER;
    return post(*vi, vi->recv, DescriptorPtr, MemoryHandle);
  });
}
