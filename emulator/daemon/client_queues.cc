#include "emulator/daemon/client_queues.h"

#include <atomic>
#include <bit>
#include <cstring>

namespace rocemu::daemon {
namespace {

constexpr uint64_t kPage = 4096;

abi::CqRing& ring_in(const SharedMemory& memory) {
  return *reinterpret_cast<abi::CqRing*>(memory.data());
}

uint64_t bytes_of(const abi::WorkQueueLayout& layout) {
  return uint64_t{layout.slots} * layout.stride;
}

uint32_t slots_for(uint32_t max_wr) {
  return max_wr == 0 ? 0 : std::bit_ceil(max_wr);
}

}  // namespace

CompletionQueue::CompletionQueue(SharedMemory memory, uint32_t capacity, uint64_t user_handle,
                                 engine::ChannelId channel)
    : memory_(std::move(memory)),
      mask_(std::bit_ceil(capacity) - 1),
      user_handle_(user_handle),
      channel_(channel) {}

uint32_t CompletionQueue::consumed() const {
  return ring_in(memory_).consumer.load(std::memory_order_acquire);
}

void CompletionQueue::add(const abi::Cqe& cqe) {
  // The engine adds no more than `capacity` before the client consumes some. A client that lies
  // about that finds its own completions overwritten, within its own ring.
  std::byte* entries = memory_.data() + sizeof(abi::CqRing);
  std::memcpy(entries + size_t{produced_ & mask_} * sizeof cqe, &cqe, sizeof cqe);
  ++produced_;
}

void CompletionQueue::publish() {
  ring_in(memory_).producer.store(produced_, std::memory_order_release);
}

void CompletionQueue::set_error() {
  ring_in(memory_).error.store(1, std::memory_order_release);
}

uint64_t cq_memory_size(uint32_t capacity) {
  return sizeof(abi::CqRing) + uint64_t{std::bit_ceil(capacity)} * sizeof(abi::Cqe);
}

QpMemoryPlan plan_qp_memory(const abi::QpCap& cap) {
  QpMemoryPlan plan{};
  plan.send.slots = slots_for(cap.max_send_wr);
  plan.send.stride = abi::send_stride(cap.max_send_sge, cap.max_inline_data);
  plan.recv.slots = slots_for(cap.max_recv_wr);
  plan.recv.stride = abi::recv_stride(cap.max_recv_sge);
  plan.recv.offset = bytes_of(plan.send);  // send strides are multiples of a cache line
  const uint64_t used = plan.recv.offset + bytes_of(plan.recv);
  plan.size = (used / kPage + 1) * kPage;
  return plan;
}

}  // namespace rocemu::daemon
