// Made-up runs for the tests of `rocemu explore`.
#pragma once

#include <string>

#include "emulator/explore/trials/run_facts.h"
#include "emulator/explore/trials/verdict.h"

namespace rocemu::explore {

/// Returns the facts about a run that printed `output` and succeeded, although its fault acted.
inline RunFacts run_that_prints(const std::string& output) {
  RunFacts facts;
  facts.fired = true;
  facts.output = output;
  return facts;
}

/// Returns the baseline of a command that prints `output`. `facts` are further facts about it.
inline Baseline baseline_that_prints(const std::string& output, RunFacts facts = {}) {
  facts.output = output;
  return {.facts = facts, .output = OutputMask({output}), .errors = OutputMask({""}), .files = {}};
}

}  // namespace rocemu::explore
