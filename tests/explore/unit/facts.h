// Made-up runs for the tests of `rocemu explore`.
#pragma once

#include <string>

#include "emulator/explore/trials/run_facts.h"
#include "emulator/explore/trials/verdict.h"

namespace rocemu::explore {

/// Returns the facts about a run whose fault acted, and which printed `output` and succeeded.
inline RunFacts run_that_prints(const std::string& output) {
  RunFacts facts;
  facts.fired = true;
  facts.output = output;
  return facts;
}

/// Returns the baseline of a command that prints `output`; `facts` says what else it does.
inline Baseline baseline_that_prints(const std::string& output, RunFacts facts = {}) {
  facts.output = output;
  return {.facts = facts, .output = OutputMask({output}), .errors = OutputMask({""}), .files = {}};
}

}  // namespace rocemu::explore
