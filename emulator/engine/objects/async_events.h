// The delivery of async events (ibv_get_async_event(3)) to programs
#pragma once

#include <cstdint>

#include "emulator/abi/rings.h"
#include "emulator/engine/objects/completion_queue.h"
#include "emulator/engine/objects/queue_pair.h"
#include "emulator/engine/step.h"

namespace rocemu::engine {

class AsyncEvents {
 public:
  virtual ~AsyncEvents() = default;

  /// Raises an event for the client. `element` is the client's handle of the object to which the
  /// event belongs, or the number of the port. `qp` is the QP, if the event belongs to one.
  virtual void raise(ClientId client, abi::EventType type, uint64_t element,
                     const QueuePair* qp = nullptr) = 0;

  /// Raises the event for all clients with a reference to the QP.
  void raise(const QueuePair& qp, abi::EventType type) {
    raise(qp.client, type, qp.user_handle, &qp);
    for (const QueuePair::Reference& other : qp.further_references) {
      raise(other.client, type, other.user_handle, &qp);
    }
  }
};

/// Decides for `--adversarial` which completions and events are delivered later.
class DeliveryHold {
 public:
  virtual ~DeliveryHold() = default;
  /// Fills the undefined fields of a completion with a pattern.
  virtual void shape(abi::Cqe& cqe) = 0;
  /// These functions return whether they keep the completion or event in order to deliver it later.
  virtual bool hold(const CompletionQueue& cq, const abi::Cqe& cqe, bool solicits) = 0;
  virtual bool hold_event(const CompletionQueue& cq) = 0;
  virtual bool hold_event(ClientId client, abi::EventType type, uint64_t element) = 0;
};

/// Delivers async events.
class EventDelivery final : public AsyncEvents {
 public:
  explicit EventDelivery(Step& step) : step_(step) {}
  using AsyncEvents::raise;
  /// Sets the object that decides which events are delivered later. It must outlive this object.
  void set_hold(DeliveryHold* hold) { hold_ = hold; }
  void raise(ClientId client, abi::EventType type, uint64_t element,
             const QueuePair* /*qp*/ = nullptr) override {
    if (hold_ != nullptr && hold_->hold_event(client, type, element)) return;
    raise_now(client, type, element);
  }
  /// Delivers an event that the DeliveryHold held back until now.
  void raise_now(ClientId client, abi::EventType type, uint64_t element) {
    step_.emit(AsyncEvent{client, type, element});
  }

 private:
  Step& step_;
  DeliveryHold* hold_ = nullptr;
};

}  // namespace rocemu::engine
