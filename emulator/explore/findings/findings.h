// Runs that ended badly, grouped by where they ended: one finding for each cause.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "emulator/explore/trials/trial.h"
#include "emulator/explore/trials/verdict.h"

namespace rocemu::explore {

struct Result {
  Trial trial;
  RunFacts facts;
  Judgement judgement;
};

struct Finding {
  size_t number = 0;  // from 1, and the name of its folder
  Verdict verdict{};
  std::string place;                // of the judgement: by this it is known again
  std::string detail;               // of the judgement
  std::vector<std::string> stacks;  // of the judgement
  std::vector<size_t> triggers;     // numbers of trials; the first is the smallest and earliest
  Trial smallest;                   // the first, without what it does not need
  int confirmed = 0, repetitions = 0;
  bool known = false;  // --known names it

  /// Returns whether a repetition ended like the finding, or none was run. A finding that occurred
  /// only once says more about a busy machine than about the program.
  bool is_repeatable() const { return repetitions == 0 || confirmed > 0; }
  /// What happened.
  std::string sentence() const;
};

/// By which a finding is known again.
std::string place_of(const Judgement& judgement);

/// Results by the number of their trial, in that order. Verdicts that are no findings are left out.
std::vector<Finding> group(const std::map<size_t, Result>& results);

/// True for what a user has to look at, by default or not.
bool is_finding(Verdict verdict);

}  // namespace rocemu::explore
