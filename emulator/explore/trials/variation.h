// A variation of a run without a fault: rare behavior that the specification allows. If a program
// fails because of such behavior, the program is wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/explore/points/recorded_events.h"

namespace rocemu::explore {

struct Variation {
  std::string schedule;     // of `rocemu run --schedule`: another order of threads
  std::string adversarial;  // of `rocemu run --adversarial`: a class, or some choices of one
  uint64_t seed = 0;        // of these choices
  std::string shrunk;       // in words, after it was reduced to the least that leads to a finding

  bool empty() const { return schedule.empty() && adversarial.empty(); }
  /// Returns the name of the adversarial class, such as "placement"; empty for a schedule.
  std::string adversarial_class() const { return adversarial.substr(0, adversarial.find(':')); }
  /// Returns a description of the variation, such as "threads execute in order 9".
  std::string text() const;
  /// Returns the options of `rocemu run` for a run with this variation. `options` are those that
  /// all runs have.
  std::vector<std::string> added_to(std::vector<std::string> options) const;

  void to_json(Json& json) const;
  static Variation from_json(const Json& json);
};

}  // namespace rocemu::explore
