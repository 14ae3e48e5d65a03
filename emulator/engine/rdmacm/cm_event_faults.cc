// Events of rdma_cm ids that rules change, lose or make up.
#include "emulator/engine/rdmacm/rdma_cm.h"

namespace rocemu::engine::cm {

using faults::Flow;
using faults::Where;

void RdmaCm::judge_event(CmChannelId channel, Event event) {
  const RdmaId* id = ids_.find(RdmaIdNumber{event.id});
  std::optional<DeviceIndex> device;
  if (id != nullptr && id->local) device = id->local->device;
  const std::vector<faults::RuleMatcher::Acting> acting =
      fabric_.faults.act({.where = Where::kCmEvent,
                          .flow = {Flow::Kind::kChannel, 0, channel.value},
                          .device = device,
                          .to = {},
                          .kind = static_cast<uint8_t>(event.event)});
  bool drop = false;
  std::vector<Event> made_up;
  for (const auto& one : acting) {
    const faults::Effects& effects = one.rule->effects;
    fabric_.faults.note(one, "rdma_cm event " + std::to_string(static_cast<uint32_t>(event.event)),
                        device, nullptr);
    drop |= effects.drop;
    if (effects.cm_event) event.event = *effects.cm_event;
    if (effects.cm_status) event.status = static_cast<uint32_t>(*effects.cm_status);
    if (effects.raise_cm) {
      Event other{};
      other.uid = event.uid;
      other.id = other.reserved = event.id;
      other.event = *effects.raise_cm;
      made_up.push_back(other);
    }
  }
  if (!drop) deliver(channel, event);
  for (const Event& one : made_up) deliver(channel, one);
}

void RdmaCm::raise(abi::ucma::EventType type, int32_t status, std::optional<DeviceIndex> device) {
  ids_.for_each([&](const RdmaId& id) {
    if (id.uid == 0 || (device && (!id.local || id.local->device != *device))) return;
    Event event{};
    event.uid = id.uid;
    event.id = event.reserved = id.number.value;
    event.event = type;
    event.status = static_cast<uint32_t>(status);
    deliver(id.channel, event);
  });
}

}  // namespace rocemu::engine::cm
