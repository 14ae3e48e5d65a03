// Runs that ended badly, grouped by where they ended: one finding for each cause.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "emulator/explore/trials/trial.h"
#include "emulator/explore/trials/verdict.h"

namespace rocemu::explore {

/// A run of a trial, and how it is judged.
struct Result {
  Trial trial;
  RunFacts facts;
  Judgement judgement;                  // on how it ended
  std::vector<Judgement> misuses = {};  // that the runs without faults do not have

  /// Returns the verdict of the judgement, or MISUSE if that would be no finding and there is one.
  Verdict verdict() const;
  std::string detail() const;
  /// Returns the judgements that are findings.
  std::vector<Judgement> found() const;
};

Result judged(const Trial& trial, const RunFacts& facts, const Baseline& baseline,
              const Limits& limits);

struct Finding {
  size_t number = 0;  // from 1, and the name of its folder
  Verdict verdict{};
  std::string place;                // of the judgement: by this it is known again
  std::string detail;               // of the judgement
  std::vector<std::string> stacks;  // of the judgement
  std::vector<size_t> triggers;     // numbers of trials; the first is the smallest and earliest
  Trial smallest;                   // the first, without what it does not need
  int confirmed = 0, repetitions = 0;
  bool known = false;       // --known names it
  bool is_warning = false;  // of the judgement

  /// Returns whether a repetition ended like the finding, or none was run. A finding that occurred
  /// only once says more about a busy machine than about the program.
  bool is_repeatable() const { return repetitions == 0 || confirmed > 0; }
  /// Describes what happened, in a sentence.
  std::string sentence() const;
};

/// By which a finding is known again.
std::string place_of(const Judgement& judgement);

/// Returns whether a run of the finding's smallest trial has it again.
bool has_again(const Finding& finding, const RunFacts& facts, const Baseline& baseline,
               const Limits& limits);

/// Results by the number of their trial, in that order. Verdicts that are no findings are left out.
/// Misuses of the baseline are findings that no fault triggers.
std::vector<Finding> group(const std::map<size_t, Result>& results,
                           const std::vector<Judgement>& baseline_misuses = {});

/// True for what a user has to look at, by default or not.
bool is_finding(Verdict verdict);

}  // namespace rocemu::explore
