#include "emulator/engine/faults/network_faults.h"

#include <algorithm>
#include <string>

#include "emulator/engine/faults/fault_injector.h"

namespace rocemu::engine::faults {
namespace {

std::string in_words(const NetworkElement& element) {
  switch (element.kind) {
    case NetworkElement::Kind::kLink:
      return "link " + element.name;
    case NetworkElement::Kind::kPort:
      return "port " + element.name;
    case NetworkElement::Kind::kSwitch:
      return "switch " + element.name;
    case NetworkElement::Kind::kHost:
      return "host " + element.name;
  }
  return element.name;
}

}  // namespace

void NetworkFaults::add(const Rule& rule) {
  remove(rule.name);
  if (!crossing_.is_there()) return;
  const auto& flap = rule.effects.network.flap;
  plans_.push_back({.rule = rule,
                    .next = std::max(step_.now(), Instant(rule.when.after)),
                    .is_on = false,
                    .times_left = flap ? flap->times : 1});
}

void NetworkFaults::remove(std::string_view name) {
  const auto found =
      std::ranges::find_if(plans_, [&](const Plan& plan) { return plan.rule.name == name; });
  if (found == plans_.end()) return;
  if (found->is_on) set(*found, false);
  plans_.erase(found);
}

void NetworkFaults::clear() {
  for (const Plan& plan : plans_) {
    if (plan.is_on) set(plan, false);
  }
  plans_.clear();
}

/// Makes all changes that are due, in the order of their times, even if the engine was not stepped
/// at each of these times. Changes of the same time happen in the order of the rules.
bool NetworkFaults::act_due() {
  bool has_acted = false;
  while (true) {
    const auto due = [](const Plan& plan) { return plan.next.value_or(Instant::max()); };
    const auto first = std::ranges::min_element(plans_, {}, due);
    if (first == plans_.end() || due(*first) > step_.now()) return has_acted;
    has_acted = true;
    if (first->is_on) {
      end(*first);
    } else {
      begin(*first);
    }
  }
}

std::optional<Instant> NetworkFaults::next_deadline() const {
  std::optional<Instant> first;
  for (const Plan& plan : plans_) {
    if (plan.next && (!first || *plan.next < *first)) first = plan.next;
  }
  return first;
}

void NetworkFaults::begin(Plan& plan) {
  const NetworkChange& change = plan.rule.effects.network;
  const Instant began = *plan.next;
  plan.next.reset();
  set(plan, true);
  if (!change.outage) plan.is_on = true;  // a switch ends its outage itself
  if (change.flap) {
    plan.next = began + change.flap->down;
  } else if (plan.rule.when.lifetime) {
    plan.next = began + *plan.rule.when.lifetime;
  }
  const RuleMatcher::Acting acting = injector_.rules.act_alone(plan.rule.name, step_.now());
  injector_.note(acting, in_words(*plan.rule.which.network), std::nullopt, nullptr);
}

void NetworkFaults::end(Plan& plan) {
  const Instant ended = *plan.next;
  plan.next.reset();
  plan.is_on = false;
  set(plan, false);
  const auto& flap = plan.rule.effects.network.flap;
  if (flap && --plan.times_left > 0) plan.next = ended + flap->up;
}

void NetworkFaults::set(const Plan& plan, bool is_on) {
  crossing_.set_fault(*plan.rule.which.network, plan.rule.effects.network, is_on);
}

}  // namespace rocemu::engine::faults
