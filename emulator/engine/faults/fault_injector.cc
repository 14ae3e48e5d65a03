#include "emulator/engine/faults/fault_injector.h"

#include <utility>

#include "emulator/engine/fabric.h"

namespace rocemu::engine::faults {

FaultInjector::FaultInjector(Fabric& fabric, uint64_t seed, std::vector<std::string> device_names)
    : rules(seed, std::move(device_names)),
      frames(fabric),
      completions(fabric),
      events(fabric),
      devices(fabric),
      fabric_(fabric) {}

void FaultInjector::add(const RuleSet& set) {
  rules.add(set);
  for (const Rule& rule : set.rules) {
    if (rule.where == Where::kNow) events.act_now(rule);
  }
}

void FaultInjector::note(const RuleMatcher::Acting& acting, std::string subject,
                         std::optional<DeviceIndex> device, const QueuePair* qp) {
  fabric_.emit(RuleFired{fabric_.now(), acting.rule, std::move(subject)});
  const Effects& effects = acting.rule->effects;
  if (effects.raise) events.raise(*effects.raise, device, qp);
  if (!device) return;
  if (effects.port) devices.change_port(*device, *effects.port);
  if (effects.remove_device) devices.remove_soon(*device);
  if (effects.gid) devices.change_gid(*device, effects.gid->index, effects.gid->address);
}

void FaultInjector::release_due() {
  frames.release_due();
  completions.release_due();
  devices.restore_ports();
}

std::optional<Instant> FaultInjector::next_deadline() const {
  std::optional<Instant> first;
  for (const auto& one :
       {frames.next_deadline(), completions.next_deadline(), devices.next_deadline()}) {
    if (one && (!first || *one < *first)) first = one;
  }
  return first;
}

}  // namespace rocemu::engine::faults
