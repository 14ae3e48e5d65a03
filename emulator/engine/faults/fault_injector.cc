#include "emulator/engine/faults/fault_injector.h"

#include <utility>

namespace rocemu::engine::faults {
FaultInjector::FaultInjector(Objects& objects, FramePool& pool, Switch& fabric_switch, Link& link,
                             NetworkCrossing& crossing, CompletionDelivery& delivery,
                             EventDelivery& event_delivery, Step& step, uint64_t seed,
                             std::vector<std::string> device_names)
    : rules(seed, std::move(device_names)),
      frames(*this, pool, fabric_switch, step),
      completions(*this, delivery, objects, step),
      events(*this, event_delivery, objects.clients),
      made_up_events(event_delivery, delivery, objects),
      devices(*this, objects, step),
      network(*this, crossing, step),
      objects_(objects),
      link_(link),
      step_(step) {}

const std::vector<RuleMatcher::Acting>& FaultInjector::act(const Occurrence& occurrence) {
  if (!rules.concerns_processes()) return rules.act(occurrence, step_.now());
  Occurrence of_process = occurrence;
  if (!of_process.owner) {
    const QueuePair* qp = objects_.qps.find(QpNumber{occurrence.qp_num});
    if (qp != nullptr) of_process.owner = qp->client;
  }
  if (of_process.owner) of_process.process = processes.of(*of_process.owner);
  return rules.act(of_process, step_.now());
}

void FaultInjector::add(const RuleSet& set) {
  rules.add(set);
  for (const Rule& rule : set.rules) {
    if (rule.where == Where::kNetwork) {
      network.add(rule);
    } else {
      network.remove(rule.name);  // this rule may replace a rule for the network
    }
    if (rule.where == Where::kNow) act_now(rule);
  }
}

void FaultInjector::remove(std::string_view name) {
  rules.remove(name);
  network.remove(name);
}

void FaultInjector::clear() {
  rules.clear();
  network.clear();
}

void FaultInjector::note(const RuleMatcher::Acting& acting, std::string subject,
                         std::optional<DeviceIndex> device, const QueuePair* qp,
                         const ActedOn& on) {
  std::optional<Owner> owner = acting.owner;
  if (!owner && qp != nullptr) owner = qp->client;
  step_.emit(RuleFired{.at = step_.now(),
                       .rule = acting.rule,
                       .subject = std::move(subject),
                       .process = process_of(owner),
                       .device = device,
                       .qp = qp != nullptr ? std::optional(qp->number) : std::nullopt,
                       .owner = owner,
                       .psn = on.psn,
                       .frame = on.frame});
  const Effects& effects = acting.rule->effects;
  if (effects.pause) link_.pause();
  if (effects.raise) made_up_events.raise(*effects.raise, device, qp);
  if (effects.kill && acting.owner) step_.emit(KillProcess{*acting.owner});
  if (!device) return;
  if (effects.port) devices.change_port(*device, *effects.port);
  if (effects.remove_device) devices.remove_soon(*device);
  if (effects.gid) devices.change_gid(*device, effects.gid->index, effects.gid->address);
}

std::string FaultInjector::process_of(const std::optional<Owner>& owner) const {
  const ProcessName* name = owner ? processes.of(*owner) : nullptr;
  return name == nullptr ? "" : name->program + "#" + std::to_string(name->number);
}

void FaultInjector::release_kept() {
  frames.release_due();
  completions.release_due();
  devices.restore_ports();
}

std::optional<Instant> FaultInjector::next_of_kept() const {
  std::optional<Instant> first;
  for (const auto& one :
       {frames.next_deadline(), completions.next_deadline(), devices.next_deadline()}) {
    if (one && (!first || *one < *first)) first = one;
  }
  return first;
}

// Lets a rule for "now" act on everything that it selects: on QPs if the rule selects QPs or raises
// an event of a QP, otherwise on devices.
void FaultInjector::act_now(const Rule& rule) {
  const Selection& which = rule.which;
  const Effects& effects = rule.effects;
  const bool about_qps = !which.qp.empty() || !which.qp_num.empty() ||
                         (effects.raise && !MadeUpEvents::concerns_device(*effects.raise));
  const auto apply = [&](DeviceIndex device, const QueuePair* qp) {
    Occurrence occurrence{.where = Where::kNow,
                          .flow = {qp != nullptr ? Flow::Kind::kQp : Flow::Kind::kDevice,
                                   device.value, qp != nullptr ? qp->order : 0},
                          .device = device,
                          .to = {}};
    if (qp != nullptr) occurrence.qp = qp->order;
    if (qp != nullptr) occurrence.qp_num = qp->number.value;
    // Other rules may match this occurrence, too. Only the new rule acts: rules for "now" act once,
    // when they are added.
    for (const auto& one : std::vector(act(occurrence))) {
      if (one.rule->name == rule.name) note(one, "what is there now", device, qp);
    }
  };
  if (!about_qps) {
    for (uint32_t i = 0; i < objects_.devices.count(); ++i) apply(DeviceIndex{i}, nullptr);
    return;
  }
  std::vector<QpNumber> numbers;
  objects_.qps.for_each([&](const QueuePair& qp) {
    if (contains(which.qp, qp.order) && contains(which.qp_num, qp.number.value)) {
      numbers.push_back(qp.number);
    }
  });
  for (const QpNumber number : numbers) {
    const QueuePair* qp = objects_.qps.find(number);
    apply(qp->device, qp);
  }
}

}  // namespace rocemu::engine::faults
