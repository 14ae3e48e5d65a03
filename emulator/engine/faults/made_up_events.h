// Async events that rules make up, and QPs that fail with them.
#pragma once

#include <optional>
#include <vector>

#include "emulator/engine/objects/async_events.h"
#include "emulator/engine/objects/completion_delivery.h"
#include "emulator/engine/objects/objects.h"

namespace rocemu::engine::faults {

class MadeUpEvents {
 public:
  /// All of them outlive this.
  MadeUpEvents(EventDelivery& delivery, CompletionDelivery& completions, Objects& objects)
      : delivery_(delivery), completions_(completions), objects_(objects) {}

  /// Raises the event of the QP, of its CQ or SRQ, or of the device, whichever it is about.
  void raise(abi::EventType type, std::optional<DeviceIndex> device, const QueuePair* qp);
  void raise_on_device(abi::EventType type, DeviceIndex device);
  /// A QP whose made-up event says that it fails, and that has yet to be failed.
  std::optional<QpNumber> take_failing_qp();
  bool has_failing_qp() const { return !failing_qps_.empty(); }

  /// The event is about the device, not about an object.
  static bool concerns_device(abi::EventType type);

 private:
  EventDelivery& delivery_;
  CompletionDelivery& completions_;
  Objects& objects_;
  std::vector<QpNumber> failing_qps_;
};

}  // namespace rocemu::engine::faults
