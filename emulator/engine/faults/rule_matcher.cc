#include "emulator/engine/faults/rule_matcher.h"

#include <algorithm>

#include "emulator/abi/control.h"

namespace rocemu::engine::faults {
namespace {

/// Computes FNV-1a, which is the same on every machine. std::hash need not be the same.
uint64_t hash(uint64_t value, std::string_view text) {
  for (const char c : text) {
    value ^= static_cast<uint8_t>(c);
    value *= 0x100000001b3u;
  }
  return value;
}

uint32_t asked_for_by(const Rule& rule) {
  const auto first = static_cast<uint32_t>(abi::kFirstAskedFor);
  uint32_t operations = 0;
  for (uint32_t op = first; op <= static_cast<uint32_t>(abi::kLastOp); ++op) {
    const uint32_t kind = op == static_cast<uint32_t>(abi::Op::kDeallocParentDomain)
                              ? static_cast<uint32_t>(abi::Op::kDeallocPd)
                              : op;
    if (rule.which.kinds && !rule.which.kinds->test(kind)) continue;
    operations |= abi::asked_for_bit(static_cast<abi::Op>(op));
  }
  return operations;
}

bool is_one_of(const std::vector<ProcessSelection>& selections, const ProcessName* process) {
  if (selections.empty()) return true;
  if (process == nullptr) return false;
  return std::ranges::any_of(selections, [&](const ProcessSelection& selection) {
    return selection.program == process->program &&
           (!selection.number || *selection.number == process->number);
  });
}

}  // namespace

bool contains(const Ranges& ranges, uint64_t number) {
  if (ranges.empty()) return true;
  return std::ranges::any_of(
      ranges, [&](const Range& range) { return range.first <= number && number <= range.last; });
}

// 53 random bits are compared with a number of 53 bits, so the result is the same on every machine
// with IEEE 754.
bool happens(Random& random, double probability) {
  return static_cast<double>(random.next() >> 11) * 0x1p-53 < probability;
}

Duration chosen(Random& random, Duration most) {
  const auto limit = static_cast<uint64_t>(most.count());
  if (limit == 0) return {};
  return Duration(static_cast<Duration::rep>(random.next() % (limit + 1)));
}

RuleMatcher::RuleMatcher(uint64_t seed, std::vector<std::string> device_names)
    : seed_(seed), device_names_(std::move(device_names)) {}

void RuleMatcher::add(const RuleSet& set) {
  for (const Rule& rule : set.rules) {
    Entry entry{.rule = std::make_shared<const Rule>(rule), .first_fired = {}, .accounts = {}};
    const auto same_name = std::ranges::find_if(
        entries_, [&](const Entry& other) { return other.rule->name == rule.name; });
    if (same_name != entries_.end()) {
      *same_name = std::move(entry);
    } else {
      entries_.push_back(std::move(entry));
    }
  }
  rebuild();
}

bool RuleMatcher::remove(std::string_view name) {
  const bool found =
      std::erase_if(entries_, [&](const Entry& entry) { return entry.rule->name == name; }) != 0;
  rebuild();
  return found;
}

void RuleMatcher::clear() {
  entries_.clear();
  rebuild();
}

void RuleMatcher::rebuild() {
  watched_ = asked_for_ = 0;
  concerns_processes_ = false;
  for (auto& place : by_place_) place.clear();
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Where where = entries_[i].rule->where;
    watched_ |= bit(where);
    const Rule& rule = *entries_[i].rule;
    concerns_processes_ |= !rule.which.processes.empty() || rule.effects.kill;
    by_place_[static_cast<size_t>(where)].push_back(i);
    if (where == Where::kVerb) asked_for_ |= asked_for_by(*entries_[i].rule);
  }
}

std::optional<DeviceIndex> RuleMatcher::device_named(std::string_view name) const {
  const auto found = std::ranges::find(device_names_, name);
  if (found == device_names_.end()) return std::nullopt;
  return DeviceIndex{static_cast<uint32_t>(found - device_names_.begin())};
}

bool RuleMatcher::is_named(const std::optional<std::string>& name,
                           std::optional<DeviceIndex> device) const {
  if (!name) return true;
  return device ? device_names_[device->value] == *name : *name == "outside";
}

bool RuleMatcher::is_there(const Selection& which, const Occurrence& occurrence) const {
  if (is_named(which.device, occurrence.device) && is_named(which.to, occurrence.to)) return true;
  return which.either_way && is_named(which.device, occurrence.to) &&
         is_named(which.to, occurrence.device);
}

bool RuleMatcher::agrees(const Rule& rule, const Occurrence& occurrence) const {
  const Selection& which = rule.which;
  // SENDs of programs and MADs of the connection manager are both SENDs on the wire. A rule for
  // frames matches only the SENDs of programs, unless it selects QP 1 or QP 1's transport.
  if (occurrence.mad && occurrence.where == Where::kFrame && !which.mads) return false;
  return (!which.kinds || which.kinds->test(occurrence.kind)) &&
         (!which.answers || which.answers->test(static_cast<size_t>(occurrence.answer))) &&
         (!which.statuses || (occurrence.status < which.statuses->size() &&
                              which.statuses->test(occurrence.status))) &&
         (!which.queue || *which.queue == occurrence.queue) &&
         is_one_of(which.processes, occurrence.process) && is_there(which, occurrence) &&
         contains(which.qp, occurrence.qp) && contains(which.qp_num, occurrence.qp_num) &&
         contains(which.dest_qp, occurrence.dest_qp) && contains(which.psn, occurrence.psn) &&
         contains(which.psn_num, occurrence.psn_num) &&
         contains(which.message, occurrence.message) && contains(which.size, occurrence.size) &&
         contains(which.wr_id, occurrence.wr_id);
}

RuleMatcher::Account& RuleMatcher::account_of(Entry& entry, const Flow& flow) const {
  const auto found = entry.accounts.find(flow);
  if (found != entry.accounts.end()) return found->second;
  // The seed is derived only from the fabric's seed, the rule and the flow, so that rules and flows
  // do not change each other's random numbers.
  Random mixer(hash(seed_ ^ 0xcbf29ce484222325u, entry.rule->name));
  uint64_t state = mixer.next();
  for (const uint32_t part : {static_cast<uint32_t>(flow.kind), flow.device, flow.object}) {
    state = Random(state ^ part).next();
  }
  return entry.accounts.emplace(flow, Account{.random = Random(state)}).first->second;
}

bool RuleMatcher::is_due(Entry& entry, Account& account, Instant now) const {
  const Trigger& when = entry.rule->when;
  const uint64_t number_in_all = ++entry.matched, number = ++account.matched;
  const bool in_burst = account.burst_left > 0;
  if (!in_burst && (!contains(when.nth, number) || !contains(when.nth_total, number_in_all) ||
                    number % when.every != 0))
    return false;
  if (account.fired >= when.count || entry.fired >= when.total) return false;
  if (when.lifetime && entry.first_fired && now >= *entry.first_fired + *when.lifetime) {
    return false;
  }
  if (!in_burst && when.probability < 1 && !happens(account.random, when.probability)) return false;
  account.burst_left = (in_burst ? account.burst_left : when.burst) - 1;
  ++account.fired;
  ++entry.fired;
  if (!entry.first_fired) entry.first_fired = now;
  return true;
}

const std::vector<RuleMatcher::Acting>& RuleMatcher::act(const Occurrence& occurrence,
                                                         Instant now) {
  acting_.clear();
  for (const size_t position : by_place_[static_cast<size_t>(occurrence.where)]) {
    Entry& entry = entries_[position];
    if (now < Instant(entry.rule->when.after) || !agrees(*entry.rule, occurrence)) continue;
    Account& account = account_of(entry, occurrence.flow);
    if (!is_due(entry, account, now)) continue;
    acting_.push_back({entry.rule, &account.random, &account.link_free_at, occurrence.owner});
  }
  return acting_;
}

RuleMatcher::Acting RuleMatcher::act_alone(std::string_view name, Instant now) {
  const auto entry =
      std::ranges::find_if(entries_, [&](const Entry& other) { return other.rule->name == name; });
  Account& account = account_of(*entry, {});
  ++account.matched, ++account.fired;
  ++entry->matched, ++entry->fired;
  if (!entry->first_fired) entry->first_fired = now;
  return {entry->rule, &account.random, &account.link_free_at};
}

std::vector<RuleReport> RuleMatcher::report() const {
  std::vector<RuleReport> reports;
  for (const Entry& entry : entries_) {
    reports.push_back({entry.rule->name, entry.rule->where, entry.matched, entry.fired});
  }
  return reports;
}

}  // namespace rocemu::engine::faults
