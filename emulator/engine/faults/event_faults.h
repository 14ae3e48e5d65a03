// Async events that rules change, lose or make up, and QPs that fail with them.
#pragma once

#include <optional>
#include <vector>

#include "emulator/abi/verbs_values.h"
#include "emulator/engine/base/ids.h"
#include "emulator/engine/faults/rule.h"

namespace rocemu::engine {

class Fabric;
struct QueuePair;

namespace faults {

class EventFaults {
 public:
  explicit EventFaults(Fabric& fabric) : fabric_(fabric) {}

  /// Delivers the event, or what rules make of it. Arguments as of Fabric::raise.
  void apply(ClientId client, abi::EventType type, uint64_t element, const QueuePair* qp);
  /// Makes up an event: of the QP, of its CQ or SRQ, or of the device.
  void raise(abi::EventType type, std::optional<DeviceIndex> device, const QueuePair* qp);
  void raise_on_device(abi::EventType type, DeviceIndex device);
  /// Applies a rule for what is there now.
  void act_now(const Rule& rule);
  /// Takes the QPs to the error state whose made-up events say so.
  void fail_qps();

 private:
  Fabric& fabric_;
  std::vector<QpNumber> failing_qps_;
};

}  // namespace faults
}  // namespace rocemu::engine
