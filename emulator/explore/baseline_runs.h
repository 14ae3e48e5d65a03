// The runs without a fault with which an exploration begins: they must succeed, and show what is
// the same in each run.
#pragma once

#include <string>
#include <vector>

#include "emulator/explore/points/recorded_events.h"
#include "emulator/explore/trials/options.h"

namespace rocemu::explore {

struct BaselineRuns {
  RecordedEvents events;        // of the first
  std::vector<RunFacts> facts;  // of three, and then of others on links of more latency
  uintmax_t events_bytes = 0, journal_bytes = 0;  // of the recording of the first
  std::string difference;             // where the three differ; empty if they are the same
  bool needs_all_processors = false;  // it fails on one, which it sees somehow
};

/// Throws ExploreError if the command cannot be explored, with the reason.
BaselineRuns run_baseline(Runner& runner, const Options& options,
                          const std::filesystem::path& folder, const std::function<bool()>& stops);

Baseline make_baseline(const std::vector<RunFacts>& facts);

}  // namespace rocemu::explore
