// Async events that rules change, lose or make up, and what else rules do beside the thing they
// look at: events that they raise, QPs that fail with them.
#include "emulator/engine/fabric.h"

namespace rocemu::engine {
namespace {

using abi::EventType;
using faults::Flow;
using faults::Where;

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

bool contains(const faults::Ranges& ranges, uint64_t number) {
  if (ranges.empty()) return true;
  for (const faults::Range& range : ranges) {
    if (range.first <= number && number <= range.last) return true;
  }
  return false;
}

}  // namespace

void Fabric::judge_event(ClientId client, EventType type, uint64_t element, const QueuePair* qp) {
  const auto attached = clients.find(client);
  if (attached == clients.end()) return deliver_event(client, type, element);
  const DeviceIndex device = attached->second;
  const auto acting =
      faults.act({.where = Where::kEvent,
                  .flow = {Flow::Kind::kClient, device.value, qp != nullptr ? qp->order : 0},
                  .device = device,
                  .to = {},
                  .kind = static_cast<uint8_t>(type),
                  .qp = qp != nullptr ? qp->order : 0,
                  .qp_num = qp != nullptr ? qp->number.value : 0},
                 now());
  bool drop = false;
  for (const auto& one : acting) {
    note(one, "async event " + std::to_string(static_cast<uint32_t>(type)), device, qp);
    if (one.rule->effects.event) type = *one.rule->effects.event;
    drop |= one.rule->effects.drop;
  }
  if (!drop) deliver_event(client, type, element);
}

void Fabric::note(const faults::Faults::Acting& acting, std::string subject,
                  std::optional<DeviceIndex> device, const QueuePair* qp) {
  step_.emit(RuleFired{now(), acting.rule, std::move(subject)});
  const faults::Effects& effects = acting.rule->effects;
  if (effects.raise) raise_by_rule(*effects.raise, device, qp);
  if (!device) return;
  if (effects.port) change_port(*device, *effects.port);
  // Not now: whoever asked the rules is not done with it.
  if (effects.remove_device) removals_.push_back(*device);
  if (effects.gid) change_gid(*device, effects.gid->index, effects.gid->address);
}

void Fabric::raise_by_rule(EventType type, std::optional<DeviceIndex> device, const QueuePair* qp) {
  const Element element = element_of(type);
  if (element == Element::kDevice) {
    if (device) raise_on_device(type, *device);
    return;
  }
  if (qp == nullptr) return;
  if (element == Element::kQp) {
    deliver_event(qp->client, type, qp->user_handle);
    for (const auto& other : qp->further_references) {
      deliver_event(other.client, type, other.user_handle);
    }
    // Not now: whoever asked the rules is not done with it.
    if (faults::fails_qp(type)) failing_qps_.push_back(qp->number);
  } else if (element == Element::kCq) {
    CompletionQueue* cq = cqs.find(qp->send_cq);
    if (cq != nullptr && !cq->failed) overrun(*cq);
  } else if (qp->srq) {
    const SharedReceiveQueue* srq = srqs.find(*qp->srq);
    if (srq != nullptr) deliver_event(srq->client, type, srq->user_handle);
  }
}

void Fabric::raise_on_device(EventType type, DeviceIndex device) {
  for (const auto& [client, of] : clients) {
    if (of == device) deliver_event(client, type, 1);  // the port, of those that name one
  }
}

void Fabric::fail_qps() {
  while (!failing_qps_.empty()) {
    QueuePair* qp = qps.find(failing_qps_.back());
    failing_qps_.pop_back();
    if (qp == nullptr || qp->state == abi::QpState::kReset || qp->state == abi::QpState::kErr) {
      continue;
    }
    enter_error(*qp);
  }
}

void Fabric::add_rules(const faults::RuleSet& rules) {
  faults.add(rules);
  for (const faults::Rule& rule : rules.rules) {
    if (rule.where == Where::kNow) act_now(rule);
  }
}

// To all that the rule selects: QPs if it names some or its event is about one, else devices.
void Fabric::act_now(const faults::Rule& rule) {
  const faults::Selection& which = rule.which;
  const faults::Effects& effects = rule.effects;
  const bool about_qps = !which.qp.empty() || !which.qp_num.empty() ||
                         (effects.raise && element_of(*effects.raise) != Element::kDevice);
  const auto act = [&](DeviceIndex device, const QueuePair* qp) {
    faults::Occurrence occurrence{.where = Where::kNow,
                                  .flow = {qp != nullptr ? Flow::Kind::kQp : Flow::Kind::kDevice,
                                           device.value, qp != nullptr ? qp->order : 0},
                                  .device = device,
                                  .to = {}};
    if (qp != nullptr) occurrence.qp = qp->order;
    if (qp != nullptr) occurrence.qp_num = qp->number.value;
    // Other rules that stay for "now" have had their moment.
    for (const auto& one : std::vector(faults.act(occurrence, now()))) {
      if (one.rule->name == rule.name) note(one, "what is there now", device, qp);
    }
  };
  if (!about_qps) {
    for (uint32_t i = 0; i < devices_.size(); ++i) act(DeviceIndex{i}, nullptr);
    return;
  }
  std::vector<QpNumber> numbers;
  qps.for_each([&](const QueuePair& qp) {
    if (contains(which.qp, qp.order) && contains(which.qp_num, qp.number.value)) {
      numbers.push_back(qp.number);
    }
  });
  for (const QpNumber number : numbers) {
    const QueuePair* qp = qps.find(number);
    act(qp->device, qp);
  }
}

}  // namespace rocemu::engine
