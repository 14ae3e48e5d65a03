// A context, a CQ, a QP and an SRQ of the provider, in memory that the test can read. There is no
// daemon: the test does its part.
#pragma once

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "verbs_provider/context/context.h"
#include "verbs_provider/structs/qp.h"
#include "verbs_provider/structs/srq.h"

namespace rocemu::provider {

class FakeQueues {
 public:
  static constexpr uint32_t kCqCapacity = 4;
  static constexpr uint32_t kMaxWr = 3;  // each ring has 4 slots
  static constexpr uint32_t kMaxSge = 2;
  static constexpr uint32_t kMaxInline = 48;
  static constexpr uint32_t kQpNumber = 0x123;
  static constexpr uint32_t kGeneration = 5;
  static constexpr uint32_t kSrqNumber = 0x45;

  explicit FakeQueues(ibv_qp_type type = IBV_QPT_RC)
      : context_(static_cast<Context*>(calloc(1, sizeof(Context)))) {
    new (&context_->parts) Context::Parts();
    context_->context.abi_compat = reinterpret_cast<void*>(UINTPTR_MAX);
    verbs_get_ctx(&context_->context)->sz = sizeof(verbs_context);
    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, connection_);
    doorbells = std::make_unique<abi::DoorbellRing>();
    context_->parts.doorbells.attach(doorbells.get(), -1, connection_[0]);

    context_->parts.payload = {reinterpret_cast<std::byte*>(payload.get()), sizeof(abi::Payload)};

    cq_memory_.resize(sizeof(abi::CqRing) / sizeof(Line) + kCqCapacity);
    cq = std::make_unique<Cq>();
    cq->verbs.cq = {};
    cq->verbs.cq.context = &context_->context;
    cq->verbs.cq.handle = 7;
    cq->ring = reinterpret_cast<abi::CqRing*>(cq_memory_.data());
    cq->ring_mask = kCqCapacity - 1;

    qp = std::make_unique<Qp>();
    qp->verbs.qp = {};
    ibv_qp& base = qp->verbs.qp;
    base.context = &context_->context;
    base.qp_num = kQpNumber;
    base.qp_type = type;
    base.send_cq = base.recv_cq = &cq->verbs.cq;
    qp->generation = kGeneration;
    qp->max_inline_data = kMaxInline;
    qp->state = abi::QpState::kRts;
    open(&qp->send, &send_memory_, abi::send_stride(kMaxSge, kMaxInline));
    qp->send.make_room_for_send_slots();
    open(&qp->recv, &recv_memory_, abi::recv_stride(kMaxSge));
    context_->parts.qps.insert(kQpNumber, qp.get());

    srq = std::make_unique<Srq>();
    srq->base = {};
    srq->base.context = &context_->context;
    srq->base.handle = kSrqNumber;
    open(&srq->recv, &srq_memory_, abi::recv_stride(kMaxSge));
    context_->parts.srqs.insert(kSrqNumber, srq.get());
  }

  ~FakeQueues() {
    context_->parts.~Parts();
    free(context_);
    close(connection_[0]);
    if (connection_[1] >= 0) close(connection_[1]);
  }

  void daemon_dies() {
    close(connection_[1]);
    connection_[1] = -1;
  }

  /// Returns the completion that the daemon would write for the `wqe_count`-th WQE of the queue.
  abi::Cqe completion(uint64_t wr_id, uint32_t wqe_count,
                      abi::WorkQueue queue = abi::WorkQueue::kSend) const {
    abi::Cqe cqe{};
    cqe.wr_id = wr_id;
    cqe.qp_num = kQpNumber;
    cqe.qp_generation = kGeneration;
    cqe.wqe_count = wqe_count;
    cqe.queue = queue;
    return cqe;
  }
  /// Returns the completion of a message that used a receive of the SRQ.
  abi::Cqe srq_completion(uint64_t wr_id, uint32_t qp_number = kQpNumber) const {
    abi::Cqe cqe = completion(wr_id, kSrqNumber, abi::WorkQueue::kSrq);
    cqe.qp_num = qp_number;
    return cqe;
  }
  void complete(const abi::Cqe& cqe) {
    const uint32_t producer = cq->ring->producer;
    cq->ring->entries[producer % kCqCapacity] = cqe;
    cq->ring->producer = producer + 1;
  }

  Context::Parts& parts() { return context_->parts; }
  ibv_srq* srq_base() { return &srq->base; }
  ibv_context* context() { return &context_->context; }
  ibv_cq* cq_base() { return &cq->verbs.cq; }
  ibv_qp* qp_base() { return &qp->verbs.qp; }
  uint32_t doorbell_count() const { return doorbells->producer; }
  uint32_t consumer_index() const { return cq->ring->consumer; }
  const abi::Doorbell& last_doorbell() const {
    return doorbells->entries[(doorbells->producer - 1) % abi::kDoorbellEntries];
  }
  abi::SendWqe send_wqe(uint32_t index) const {
    abi::SendWqe wqe;
    memcpy(&wqe, send_slot(index), sizeof(wqe));
    return wqe;
  }
  const std::byte* send_slot(uint32_t index) const {
    return qp->send.slots + (index % 4) * qp->send.stride;
  }
  const std::byte* srq_slot(uint32_t index) const {
    return srq->recv.slots + (index % 4) * srq->recv.stride;
  }
  const std::byte* recv_slot(uint32_t index) const {
    return qp->recv.slots + (index % 4) * qp->recv.stride;
  }

  std::unique_ptr<abi::DoorbellRing> doorbells;
  std::unique_ptr<abi::Payload> payload = std::make_unique<abi::Payload>();
  std::unique_ptr<Cq> cq;
  std::unique_ptr<Qp> qp;
  std::unique_ptr<Srq> srq;

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  static void open(WorkQueue* queue, std::vector<Line>* memory, uint32_t stride) {
    memory->resize(stride * 4 / sizeof(Line) + 1);
    memset(static_cast<void*>(memory->data()), 0xa5, memory->size() * sizeof(Line));
    queue->slots = memory->data()->bytes;
    queue->slot_mask = 3;
    queue->stride = stride;
    queue->max_wr = kMaxWr;
    queue->max_sge = kMaxSge;
  }

  Context* context_;
  int connection_[2];
  std::vector<Line> cq_memory_, send_memory_, recv_memory_, srq_memory_;
};

}  // namespace rocemu::provider
