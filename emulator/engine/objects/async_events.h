// Async events (ibv_get_async_event(3)) on their way to programs.
#pragma once

#include <cstdint>

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

/// Delivers them.
class EventDelivery final : public AsyncEvents {
 public:
  explicit EventDelivery(Step& step) : step_(step) {}
  using AsyncEvents::raise;
  void raise(ClientId client, abi::EventType type, uint64_t element,
             const QueuePair* /*qp*/ = nullptr) override {
    step_.emit(AsyncEvent{client, type, element});
  }

 private:
  Step& step_;
};

}  // namespace rocemu::engine
