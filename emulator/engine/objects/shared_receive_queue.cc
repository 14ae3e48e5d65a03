#include "emulator/engine/objects/shared_receive_queue.h"

#include <algorithm>
#include <array>

#include "emulator/engine/objects/async_events.h"
#include "emulator/engine/objects/objects.h"

namespace rocemu::engine::shared_receive_queue {

using abi::RecvWqe;

ReceiveWqe oldest(const SharedReceiveQueue& srq) {
  const uint32_t index = srq.queue.head();
  const auto header = srq.queue.header<RecvWqe>(index);
  const uint32_t sges = std::min(header.num_sge, srq.max_sge);
  return {.wr_id = header.wr_id,
          .wqe_count = srq.id.value,
          .srq = srq.id,
          .pd = srq.pd,
          .cq = srq.cq,
          .well_formed = header.num_sge <= srq.max_sge,
          .posted_sges = header.num_sge,
          .sges = read_sges(srq.queue.rest(index, sizeof(RecvWqe)), sges)};
}

void take(AsyncEvents& events, SharedReceiveQueue& srq) {
  srq.queue.pop();
  ++srq.taken;
  check_limit(events, srq);
}

void finish(Objects& objects, const ReceiveWqe& wqe) {
  if (SharedReceiveQueue* srq = objects.srqs.find(*wqe.srq)) --srq->taken;
}

void put_back(Objects& objects, const ReceiveWqe& wqe) {
  SharedReceiveQueue* srq = objects.srqs.find(*wqe.srq);
  if (srq == nullptr) return;
  std::array<std::byte, sizeof(RecvWqe) + kMaxSge * sizeof(abi::Sge)> bytes;
  const RecvWqe header{.wr_id = wqe.wr_id, .num_sge = wqe.posted_sges, .reserved = 0};
  std::memcpy(bytes.data(), &header, sizeof(header));
  const size_t sges = wqe.sges.size() * sizeof(abi::Sge);
  std::memcpy(bytes.data() + sizeof(header), wqe.sges.data(), sges);
  srq->queue.push_front({bytes.data(), sizeof(header) + sges});
  --srq->taken;
}

void check_limit(AsyncEvents& events, SharedReceiveQueue& srq) {
  if (srq.limit == 0 || srq.queue.size() >= srq.limit) return;
  srq.limit = 0;
  events.raise(srq.client, abi::EventType::kSrqLimitReached, srq.user_handle);
}

}  // namespace rocemu::engine::shared_receive_queue
