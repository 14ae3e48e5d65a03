#include "emulator/explore/trial.h"

#include <fmt/format.h>

#include <algorithm>

namespace rocemu::explore {
namespace {

std::string rule_for(const FaultPoint& point, const Fault& fault) {
  const bool for_ever = fault.times == Times::kForEver;
  std::string rule = fmt::format("{{on: {}, {}", name_of(point.kind), point.place);
  if (point.nth != 0)
    rule += for_ever ? fmt::format(", nth: {}-", point.nth) : fmt::format(", nth: {}", point.nth);
  if (!for_ever) rule += ", total: 1";
  return fmt::format("{}, do: {}}}", rule, fault.effect);
}

}  // namespace

std::vector<Trial> plan(const std::vector<FaultPoint>& points) {
  struct Ordered {
    uint64_t position;
    Trial trial;
  };
  std::vector<Ordered> all;
  for (const FaultPoint& point : points) {
    for (const Fault& fault : faults_for(point)) {
      Trial trial;
      trial.text = fmt::format("{} {}", point.text(), fault.text);
      trial.scenario = fmt::format("# {}\nrules:\n  - {}\n", trial.text, rule_for(point, fault));
      trial.kind = name_of(point.kind);
      trial.process = point.process;
      trial.time_ns = point.time_ns;
      trial.represents = point.represents;
      all.push_back({point.position, std::move(trial)});
    }
  }
  std::ranges::stable_sort(all, {}, &Ordered::position);
  std::vector<Trial> trials;
  for (Ordered& one : all) {
    one.trial.number = trials.size() + 1;
    trials.push_back(std::move(one.trial));
  }
  return trials;
}

}  // namespace rocemu::explore
