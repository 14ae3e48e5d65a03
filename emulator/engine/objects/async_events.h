// Async events (ibv_get_async_event(3)) on their way to programs.
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

  /// `element` is the client's handle of the object that the event is about, or the number of the
  /// port; `qp` is the QP, if it is about one.
  virtual void raise(ClientId client, abi::EventType type, uint64_t element,
                     const QueuePair* qp = nullptr) = 0;

  /// To all that have a reference to the QP.
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
  /// Changes what the program may find in a completion.
  virtual void shape(abi::Cqe& cqe) = 0;
  /// Return whether it is kept, to be delivered later.
  virtual bool hold(const CompletionQueue& cq, const abi::Cqe& cqe, bool solicits) = 0;
  virtual bool hold_event(const CompletionQueue& cq) = 0;
  virtual bool hold_event(ClientId client, abi::EventType type, uint64_t element) = 0;
};

/// Delivers them.
class EventDelivery final : public AsyncEvents {
 public:
  explicit EventDelivery(Step& step) : step_(step) {}
  using AsyncEvents::raise;
  /// `hold` outlives this.
  void set_hold(DeliveryHold* hold) { hold_ = hold; }
  void raise(ClientId client, abi::EventType type, uint64_t element,
             const QueuePair* /*qp*/ = nullptr) override {
    if (hold_ != nullptr && hold_->hold_event(client, type, element)) return;
    raise_now(client, type, element);
  }
  /// The same for what was held.
  void raise_now(ClientId client, abi::EventType type, uint64_t element) {
    step_.emit(AsyncEvent{client, type, element});
  }

 private:
  Step& step_;
  DeliveryHold* hold_ = nullptr;
};

}  // namespace rocemu::engine
