#include "emulator/engine/faults/event_faults.h"

#include <string>

#include "emulator/engine/fabric.h"

namespace rocemu::engine::faults {
namespace {

using abi::EventType;

enum class Element { kQp, kCq, kSrq, kDevice };

/// ibv_get_async_event(3): what each event is about.
Element element_of(EventType type) {
  switch (type) {
    case EventType::kQpFatal:
    case EventType::kQpReqErr:
    case EventType::kQpAccessErr:
    case EventType::kCommEst:
    case EventType::kSqDrained:
    case EventType::kPathMig:
    case EventType::kPathMigErr:
    case EventType::kQpLastWqeReached:
      return Element::kQp;
    case EventType::kCqErr:
      return Element::kCq;
    case EventType::kSrqErr:
    case EventType::kSrqLimitReached:
      return Element::kSrq;
    case EventType::kDeviceFatal:
    case EventType::kPortActive:
    case EventType::kPortErr:
    case EventType::kLidChange:
    case EventType::kPkeyChange:
    case EventType::kSmChange:
    case EventType::kClientReregister:
    case EventType::kGidChange:
    case EventType::kWqFatal:  // there are no WQs
      break;
  }
  return Element::kDevice;
}

bool contains(const Ranges& ranges, uint64_t number) {
  if (ranges.empty()) return true;
  for (const Range& range : ranges) {
    if (range.first <= number && number <= range.last) return true;
  }
  return false;
}

}  // namespace

void EventFaults::apply(ClientId client, EventType type, uint64_t element, const QueuePair* qp) {
  const auto attached = fabric_.clients.find(client);
  if (attached == fabric_.clients.end()) return fabric_.deliver_event(client, type, element);
  const DeviceIndex device = attached->second;
  const auto acting = fabric_.faults.rules.act(
      {.where = Where::kEvent,
       .flow = {Flow::Kind::kClient, device.value, qp != nullptr ? qp->order : 0},
       .device = device,
       .to = {},
       .kind = static_cast<uint8_t>(type),
       .qp = qp != nullptr ? qp->order : 0,
       .qp_num = qp != nullptr ? qp->number.value : 0},
      fabric_.now());
  bool drop = false;
  for (const auto& one : acting) {
    fabric_.faults.note(one, "async event " + std::to_string(static_cast<uint32_t>(type)), device,
                        qp);
    if (one.rule->effects.event) type = *one.rule->effects.event;
    drop |= one.rule->effects.drop;
  }
  if (!drop) fabric_.deliver_event(client, type, element);
}

void EventFaults::raise(EventType type, std::optional<DeviceIndex> device, const QueuePair* qp) {
  const Element element = element_of(type);
  if (element == Element::kDevice) {
    if (device) raise_on_device(type, *device);
    return;
  }
  if (qp == nullptr) return;
  if (element == Element::kQp) {
    fabric_.deliver_event(qp->client, type, qp->user_handle);
    for (const auto& other : qp->further_references) {
      fabric_.deliver_event(other.client, type, other.user_handle);
    }
    // Later, since the caller that asked the rules is not done with it.
    if (fails_qp(type)) failing_qps_.push_back(qp->number);
  } else if (element == Element::kCq) {
    CompletionQueue* cq = fabric_.cqs.find(qp->send_cq);
    if (cq != nullptr && !cq->failed) fabric_.overrun(*cq);
  } else if (qp->srq) {
    const SharedReceiveQueue* srq = fabric_.srqs.find(*qp->srq);
    if (srq != nullptr) fabric_.deliver_event(srq->client, type, srq->user_handle);
  }
}

void EventFaults::raise_on_device(EventType type, DeviceIndex device) {
  for (const auto& [client, of] : fabric_.clients) {
    if (of == device) fabric_.deliver_event(client, type, 1);  // the port, of those that name one
  }
}

void EventFaults::fail_qps() {
  while (!failing_qps_.empty()) {
    QueuePair* qp = fabric_.qps.find(failing_qps_.back());
    failing_qps_.pop_back();
    if (qp == nullptr || qp->state == abi::QpState::kReset || qp->state == abi::QpState::kErr) {
      continue;
    }
    fabric_.enter_error(*qp);
  }
}

// To all that the rule selects: QPs if it names some or its event is about one, else devices.
void EventFaults::act_now(const Rule& rule) {
  const Selection& which = rule.which;
  const Effects& effects = rule.effects;
  const bool about_qps = !which.qp.empty() || !which.qp_num.empty() ||
                         (effects.raise && element_of(*effects.raise) != Element::kDevice);
  const auto act = [&](DeviceIndex device, const QueuePair* qp) {
    Occurrence occurrence{.where = Where::kNow,
                          .flow = {qp != nullptr ? Flow::Kind::kQp : Flow::Kind::kDevice,
                                   device.value, qp != nullptr ? qp->order : 0},
                          .device = device,
                          .to = {}};
    if (qp != nullptr) occurrence.qp = qp->order;
    if (qp != nullptr) occurrence.qp_num = qp->number.value;
    // Other rules that stay for "now" have had their moment.
    for (const auto& one : std::vector(fabric_.faults.rules.act(occurrence, fabric_.now()))) {
      if (one.rule->name == rule.name) fabric_.faults.note(one, "what is there now", device, qp);
    }
  };
  if (!about_qps) {
    for (uint32_t i = 0; i < fabric_.devices().size(); ++i) act(DeviceIndex{i}, nullptr);
    return;
  }
  std::vector<QpNumber> numbers;
  fabric_.qps.for_each([&](const QueuePair& qp) {
    if (contains(which.qp, qp.order) && contains(which.qp_num, qp.number.value)) {
      numbers.push_back(qp.number);
    }
  });
  for (const QpNumber number : numbers) {
    const QueuePair* qp = fabric_.qps.find(number);
    act(qp->device, qp);
  }
}

}  // namespace rocemu::engine::faults
