// A trial: the way in which one run differs from the run without faults. It has a fault at a point,
// several faults, or a variation. A trial with none of these is the run without faults.
#pragma once

#include <string>
#include <vector>

#include "emulator/explore/points/fault_table.h"
#include "emulator/explore/points/point.h"
#include "emulator/explore/points/recorded_events.h"
#include "emulator/explore/trials/variation.h"

namespace rocemu::explore {

struct Cause {
  std::string text;  // "server#1's 2nd reg_mr fails with ENOMEM"
  std::string rule;  // "{on: verb, ...}"
};

struct Trial {
  size_t number = 0;  // its place in the plan, from 1
  std::vector<Cause> causes;
  Variation variation;     // instead of causes
  std::string kind, name;  // of the point: "verb", "reg_mr"
  std::string process;
  int64_t time_ns = 0;  // the time of the point in the baseline
  size_t represents = 1;
  size_t follows = 0;  // the number of the trial whose fault comes first; 0: none

  bool is_undisturbed() const { return causes.empty() && variation.empty(); }
  /// Returns a description of the trial, such as "server#1's 2nd reg_mr fails with ENOMEM".
  std::string text() const;
  /// Returns the scenario that causes the trial's faults. Each trial has a different scenario.
  std::string scenario() const;
  /// Returns the key under which the result of the trial's repetition with this number is stored.
  std::string repetition_key(int repetition) const;

  Json to_json() const;
  static Trial from_json(const Json& json);
};

/// Returns a trial for every fault at every point. Trials at the first point of each class come
/// first, then those at the second points, and so on. So even a short exploration covers most
/// classes.
std::vector<Trial> plan(const std::vector<FaultPoint>& points);

}  // namespace rocemu::explore
