// Async events that rules inject, and the QPs that such events declare as failed
#pragma once

#include <optional>
#include <vector>

#include "emulator/engine/objects/async_events.h"
#include "emulator/engine/objects/completion_delivery.h"
#include "emulator/engine/objects/objects.h"

namespace rocemu::engine::faults {

class MadeUpEvents {
 public:
  /// All arguments must outlive this object.
  MadeUpEvents(EventDelivery& delivery, CompletionDelivery& completions, Objects& objects)
      : delivery_(delivery), completions_(completions), objects_(objects) {}

  /// Raises the event for the object that events of this type concern: the QP, its CQ or SRQ, or
  /// the device.
  void raise(abi::EventType type, std::optional<DeviceIndex> device, const QueuePair* qp);
  void raise_on_device(abi::EventType type, DeviceIndex device);
  /// Removes and returns a QP that an injected event declared as failed; the caller must now fail
  /// it. Returns nothing if there is no such QP.
  std::optional<QpNumber> take_failing_qp();
  bool has_failing_qp() const { return !failing_qps_.empty(); }

  /// Returns whether events of this type belong to the device and not to an object.
  static bool concerns_device(abi::EventType type);

 private:
  EventDelivery& delivery_;
  CompletionDelivery& completions_;
  Objects& objects_;
  std::vector<QpNumber> failing_qps_;
};

}  // namespace rocemu::engine::faults
