#include "emulator/engine/rdmacm/event_output.h"

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "emulator/engine/faults/request_faults.h"

namespace rocemu::engine::cm {
namespace {

using faults::Flow;
using faults::Where;

/// Returns the status (rdma_get_cm_event(3)) of an event that a rule raises in addition to another
/// event. Linux reports -ETIMEDOUT for an unreachable peer (cma_netevent_work_handler), and 0 for
/// other events.
int32_t status_of(abi::ucma::EventType type) {
  return type == abi::ucma::EventType::kUnreachable ? -ETIMEDOUT : 0;
}

EventOutput::Event event_of(const RdmaId& id, abi::ucma::EventType type, int32_t status) {
  EventOutput::Event event{};
  event.uid = id.uid;
  event.id = event.reserved = id.number.value;
  event.event = type;
  event.status = static_cast<uint32_t>(status);
  return event;
}

}  // namespace

void EventOutput::emit(const RdmaId& id, abi::ucma::EventType type, int32_t status,
                       const Event::Param& param) {
  if (id.uid == 0) return;  // not accepted yet: see RdmaId::uid
  Event event = event_of(id, type, status);
  event.param = param;
  emit(id.channel, event);
}

void EventOutput::emit(CmChannelId channel, const Event& event) {
  if (faults_.watches(Where::kCmEvent)) [[unlikely]] {
    return apply_rules(channel, event);
  }
  deliver(channel, event);
}

void EventOutput::deliver(CmChannelId channel, const Event& event) {
  if (faults_.watches(Where::kVerb)) [[unlikely]] {
    const CmCommand get{channel, abi::ucma::Command::kGetEvent, {}, 0};
    if (const int error = faults::verb_fault(faults_, get)) {
      Event failure = event;  // has the id of the event, with which the provider removes it
      failure.event = abi::ucma::EventType::kGetEventFailed;
      failure.status = static_cast<uint32_t>(error);
      outputs_->list.emplace_back(CmEvent{channel, std::make_shared<const Event>(failure)});
    }
  }
  outputs_->list.emplace_back(CmEvent{channel, std::make_shared<const Event>(event)});
}

void EventOutput::apply_rules(CmChannelId channel, Event event) {
  // The field `id` of a connection request is the id that the request creates. The field `id` of a
  // join is the number of the join, and `reserved` is the id that joined.
  const bool is_join = event.event == abi::ucma::EventType::kMulticastJoin;
  const RdmaId* id = ids_.find(RdmaIdNumber{is_join ? event.reserved : event.id});
  std::optional<DeviceIndex> device;
  if (id != nullptr && id->local) device = id->local->device;
  const std::vector<faults::RuleMatcher::Acting> acting =
      faults_.act({.where = Where::kCmEvent,
                   .flow = {Flow::Kind::kChannel, 0, channel.value},
                   .device = device,
                   .to = {},
                   .kind = static_cast<uint8_t>(event.event),
                   .owner = channel});
  bool drop = false;
  std::vector<Event> made_up;
  for (const auto& one : acting) {
    const faults::Effects& effects = one.rule->effects;
    faults_.note(one, "rdma_cm event " + std::to_string(static_cast<uint32_t>(event.event)), device,
                 nullptr);
    drop |= effects.drop;
    if (effects.cm_event) event.event = *effects.cm_event;
    if (effects.cm_status) event.status = static_cast<uint32_t>(*effects.cm_status);
    // A program gets no events for an id that it has not accepted yet: see RdmaId::uid.
    if (effects.raise_cm && id != nullptr && id->uid != 0)
      made_up.push_back(event_of(*id, *effects.raise_cm, status_of(*effects.raise_cm)));
  }
  if (!drop) deliver(channel, event);
  for (const Event& one : made_up) deliver(channel, one);
}

void EventOutput::raise(abi::ucma::EventType type, int32_t status,
                        std::optional<DeviceIndex> device) {
  ids_.for_each([&](const RdmaId& id) {
    if (id.uid == 0 || (device && (!id.local || id.local->device != *device))) return;
    deliver(id.channel, event_of(id, type, status));
  });
}

}  // namespace rocemu::engine::cm
