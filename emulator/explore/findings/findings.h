// Groups the runs that ended badly by the place where they ended, so that each cause becomes one
// finding.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "emulator/explore/trials/trial.h"
#include "emulator/explore/trials/verdict.h"

namespace rocemu::explore {

/// A run of a trial, and the judgments on that run
struct Result {
  Trial trial;
  RunFacts facts;
  Judgment judgment;                   // on the end of the run
  std::vector<Judgment> misuses = {};  // only those that the runs without faults do not have

  /// Returns the verdict of `judgment`, or MISUSE if that verdict is not a finding but there is a
  /// misuse.
  Verdict verdict() const;
  std::string detail() const;
  /// Returns those judgments on the run that are findings.
  std::vector<Judgment> found() const;
};

Result judged(const Trial& trial, const RunFacts& facts, const Baseline& baseline,
              const Limits& limits);

struct Finding {
  size_t number = 0;  // from 1; also the name of its folder
  Verdict verdict{};
  std::string signature;            // of the judgment: identifies the finding in a later run
  std::string detail;               // of the judgment
  std::vector<std::string> stacks;  // of the judgment
  std::vector<size_t> triggers;     // numbers of trials; the first is the smallest and earliest
  Trial smallest;                   // the first trial, without its unneeded parts
  int confirmed = 0, repetitions = 0;
  bool known = false;       // --known names it
  bool is_warning = false;  // of the judgment

  /// Returns whether a repetition ended like the finding, or there was no repetition. A finding
  /// that occurred only once often shows that the machine was busy, and not a mistake of the
  /// program.
  bool is_repeatable() const { return repetitions == 0 || confirmed > 0; }
  /// Returns a sentence that describes what happened.
  std::string sentence() const;
};

/// Returns the text by which a finding is recognized in a later run.
std::string signature_of(const Judgment& judgment);

/// Returns whether a repetition of the finding's smallest trial ended like the finding. `facts` are
/// the facts about that repetition.
bool has_again(const Finding& finding, const RunFacts& facts, const Baseline& baseline,
               const Limits& limits);

/// Groups the results into findings. The keys of `results` are the numbers of trials. Results whose
/// verdicts are not findings are left out. A misuse that the baseline already has is a finding
/// without a fault that triggers it.
std::vector<Finding> group(const std::map<size_t, Result>& results,
                           const std::vector<Judgment>& baseline_misuses = {});

/// Returns whether users must examine a result with this verdict. --fail-on selects which of these
/// verdicts cause a failure.
bool is_finding(Verdict verdict);

}  // namespace rocemu::explore
