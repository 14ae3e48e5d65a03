#include "emulator/engine/faults/event_faults.h"

#include <string>

#include "emulator/engine/faults/fault_injector.h"

namespace rocemu::engine::faults {

void EventFaults::raise(ClientId client, abi::EventType type, uint64_t element,
                        const QueuePair* qp) {
  if (!injector_.watches(Where::kEvent)) return delivery_.raise(client, type, element, qp);
  const auto device = clients_.find_device_of(client);
  if (!device) return delivery_.raise(client, type, element, qp);
  const auto acting =
      injector_.act({.where = Where::kEvent,
                     .flow = {Flow::Kind::kClient, device->value, qp != nullptr ? qp->order : 0},
                     .device = *device,
                     .to = {},
                     .kind = static_cast<uint8_t>(type),
                     .qp = qp != nullptr ? qp->order : 0,
                     .qp_num = qp != nullptr ? qp->number.value : 0,
                     .owner = client});
  bool drop = false;
  for (const auto& one : acting) {
    injector_.note(one, "async event " + std::string(name_of(type)), *device, qp);
    if (one.rule->effects.event) type = *one.rule->effects.event;
    drop |= one.rule->effects.drop;
  }
  if (!drop) delivery_.raise(client, type, element, qp);
}

}  // namespace rocemu::engine::faults
