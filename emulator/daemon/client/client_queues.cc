#include "emulator/daemon/client/client_queues.h"

#include <linux/futex.h>
#include <spdlog/spdlog.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "emulator/engine/protocol/nak_codes.h"

namespace rocemu::daemon {
namespace {

/// The maximum numbers of queues, and of bytes of their memory, that one call of dismantle()
/// releases
constexpr uint32_t kQueuesAtOnce = 1024;
constexpr uint64_t kBytesAtOnce = 16 << 20;

abi::CqRing& ring_in(const Arena::Piece& memory) {
  return *reinterpret_cast<abi::CqRing*>(memory.data());
}

/// Initializes an empty ring.
void clear(abi::CqRing& ring) {
  for (std::atomic<uint32_t>* word :
       {&ring.producer, &ring.error, &ring.waiting, &ring.wake_at, &ring.watched, &ring.consumer}) {
    word->store(0, std::memory_order_relaxed);
  }
}

/// Logs which mistake of the program caused the completion's error, if that is known.
void explain(const abi::Cqe& cqe) {
  if (cqe.vendor_err != static_cast<uint32_t>(engine::VendorError::kLKeyAsRKey)) return;
  spdlog::warn(
      "QP {}: the work request {} failed with IBV_WC_REM_ACCESS_ERR, since it names the L_Key of a "
      "region where its R_Key belongs (ibv_mr.rkey, not ibv_mr.lkey). On many NICs both are equal; "
      "with --same-keys they are equal here, too",
      cqe.qp_num, cqe.wr_id);
}

uint64_t bytes_of(const abi::WorkQueueLayout& layout) {
  return uint64_t{layout.slots} * layout.stride;
}

uint32_t slots_for(uint32_t max_wr) {
  return max_wr == 0 ? 0 : std::bit_ceil(max_wr);
}

}  // namespace

CompletionQueue::CompletionQueue(Arena::Piece memory, uint32_t capacity, uint64_t user_handle,
                                 engine::ChannelId channel)
    : memory_(std::move(memory)),
      capacity_(capacity),
      mask_(std::bit_ceil(capacity) - 1),
      user_handle_(user_handle),
      channel_(channel) {
  clear(ring_in(memory_));
}

uint32_t CompletionQueue::consumed() const {
  return ring_in(memory_).consumer.load(std::memory_order_acquire);
}

bool CompletionQueue::move_to(Arena::Piece memory, uint32_t capacity) {
  const uint32_t taken = consumed();
  const uint32_t waiting = produced_ - taken;
  if (waiting > capacity_ || waiting > capacity) return false;
  const uint32_t mask = std::bit_ceil(capacity) - 1;
  const std::byte* from = memory_.data() + sizeof(abi::CqRing);
  std::byte* to = memory.data() + sizeof(abi::CqRing);
  for (uint32_t n = taken; n != produced_; ++n) {
    std::memcpy(to + size_t{n & mask} * sizeof(abi::Cqe),
                from + size_t{n & mask_} * sizeof(abi::Cqe), sizeof(abi::Cqe));
  }
  clear(ring_in(memory));
  ring_in(memory).consumer.store(taken, std::memory_order_relaxed);
  std::swap(memory_, memory);
  capacity_ = capacity;
  mask_ = mask;
  if (failed_) set_error();
  ring_in(memory_).watched.store(is_watched_ ? 1 : 0, std::memory_order_relaxed);
  ring_in(memory_).producer.store(produced_, std::memory_order_release);
  return true;
}

void CompletionQueue::add(const abi::Cqe& cqe) {
  if (cqe.status != 0) [[unlikely]]
    explain(cqe);
  // The engine adds at most `capacity` completions before the client consumes some. If a client
  // reports a wrong number of consumed completions, its completions are overwritten, but only
  // within its own ring.
  std::byte* entries = memory_.data() + sizeof(abi::CqRing);
  std::memcpy(entries + size_t{produced_ & mask_} * sizeof cqe, &cqe, sizeof cqe);
  ++produced_;
}

bool CompletionQueue::publish() {
  abi::CqRing& ring = ring_in(memory_);
  const bool is_new = !std::exchange(is_watched_, true);
  if (is_new) ring.watched.store(1, std::memory_order_relaxed);
  // The store to `producer` and the load of `waiting` are sequentially consistent; CqRing::waiting
  // explains why.
  ring.producer.store(produced_, std::memory_order_seq_cst);
  if (ring.waiting.load(std::memory_order_seq_cst) != 0 &&
      static_cast<int32_t>(produced_ - ring.wake_at.load(std::memory_order_relaxed)) >= 0) {
    wake();
  }
  return is_new;
}

void CompletionQueue::unwatch() {
  is_watched_ = false;
  ring_in(memory_).watched.store(0, std::memory_order_seq_cst);
  wake_waiting();
}

bool CompletionQueue::wake_waiting() {
  if (ring_in(memory_).waiting.load(std::memory_order_seq_cst) == 0) return false;
  wake();
  return true;
}

void CompletionQueue::wake() {
  abi::CqRing& ring = ring_in(memory_);
  ring.waiting.store(0, std::memory_order_relaxed);
  syscall(SYS_futex, &ring.waiting, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr, nullptr,
          0);
}

void CompletionQueue::set_error() {
  failed_ = true;
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
  plan.size = std::max<uint64_t>(plan.recv.offset + bytes_of(plan.recv), 1);
  return plan;
}

abi::QpCap without_missing_queues(abi::QpCap cap, abi::QpType type, bool has_srq) {
  const bool is_target = type == abi::QpType::kXrcRecv;
  if (is_target) cap.max_send_wr = 0;
  if (is_target || type == abi::QpType::kXrcSend || has_srq) cap.max_recv_wr = 0;
  return cap;
}

SrqMemoryPlan plan_srq_memory(uint32_t max_wr, uint32_t max_sge) {
  const abi::WorkQueueLayout recv{
      .offset = 0, .slots = slots_for(max_wr), .stride = abi::recv_stride(max_sge)};
  return {.recv = recv, .size = std::max<uint64_t>(bytes_of(recv), 1)};
}

bool ClientQueues::dismantle() {
  arena.close();
  uint32_t budget = kQueuesAtOnce;
  const auto thin_out = [&budget](auto& queues) {
    while (!queues.empty() && budget > 0) budget -= std::min(budget, queues.erase_some());
    return queues.empty();
  };
  if (!thin_out(qps) || !thin_out(srqs) || !thin_out(cqs)) return true;
  doorbell_memory = {};
  return arena.drop(kBytesAtOnce);
}

void ClientQueues::shrink() {
  qps.shrink();
  cqs.shrink();
  srqs.shrink();
}

}  // namespace rocemu::daemon
