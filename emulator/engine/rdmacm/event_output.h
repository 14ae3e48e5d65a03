// Sends the events of rdma_cm ids to the event channels, and applies rules that change, drop or
// inject events.
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/abi/ucma.h"
#include "emulator/engine/events.h"
#include "emulator/engine/faults/fault_injector.h"
#include "emulator/engine/rdmacm/id_table.h"

namespace rocemu::engine::cm {

class EventOutput {
 public:
  using Event = abi::ucma::EventResponse;

  /// Both arguments must outlive this object.
  EventOutput(faults::FaultInjector& injector, const IdTable& ids) : faults_(injector), ids_(ids) {}

  /// Sets the outputs to which events are added until the next step.
  void begin_step(Outputs& outputs) { outputs_ = &outputs; }

  /// Sends an event of the id, unless the program has not accepted the id yet (RdmaId::uid).
  void emit(const RdmaId& id, abi::ucma::EventType type, int32_t status = 0,
            const Event::Param& param = {});
  void emit(CmChannelId channel, const Event& event);

  /// Sends an event that a rule raises: to all ids bound to the device or, without a device, to all
  /// ids.
  void raise(abi::ucma::EventType type, int32_t status, std::optional<DeviceIndex> device);

 private:
  void apply_rules(CmChannelId channel, Event event);
  /// Adds the event to the outputs. If a rule makes rdma_get_cm_event() fail for it, adds a
  /// kGetEventFailed first.
  void deliver(CmChannelId channel, const Event& event);

  faults::FaultInjector& faults_;
  const IdTable& ids_;
  Outputs* outputs_ = nullptr;
};

}  // namespace rocemu::engine::cm
