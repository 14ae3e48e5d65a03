// Applies rules to async events before they reach the program.
#pragma once

#include "emulator/engine/faults/rule_matcher.h"
#include "emulator/engine/objects/async_events.h"
#include "emulator/engine/objects/clients.h"

namespace rocemu::engine::faults {

class FaultInjector;

class EventFaults final : public AsyncEvents {
 public:
  /// All arguments must outlive this object.
  EventFaults(FaultInjector& injector, EventDelivery& delivery, const Clients& clients)
      : injector_(injector), delivery_(delivery), clients_(clients) {}

  /// Delivers the event, or the event into which rules turn it, unless a rule drops it.
  using AsyncEvents::raise;
  void raise(ClientId client, abi::EventType type, uint64_t element,
             const QueuePair* qp = nullptr) override;

 private:
  FaultInjector& injector_;
  EventDelivery& delivery_;
  const Clients& clients_;
};

}  // namespace rocemu::engine::faults
