// Makes the runs without a fault at the beginning of an exploration. They must succeed. They show
// what is equal in each run.
#pragma once

#include <string>
#include <vector>

#include "emulator/explore/points/recorded_events.h"
#include "emulator/explore/trials/options.h"

namespace rocemu::explore {

struct BaselineRuns {
  RecordedEvents events;        // of the first run
  std::vector<RunFacts> facts;  // of three runs, and then of runs with more latency
  uintmax_t events_bytes = 0, journal_bytes = 0;  // of the first run's recording
  std::string difference;             // where the three runs differ; empty if they are equal
  bool needs_all_processors = false;  // the command fails if it runs on one processor
};

/// Makes the runs without a fault. Throws ExploreError with the reason if the command cannot be
/// explored.
BaselineRuns run_baseline(Runner& runner, const Options& options,
                          const std::filesystem::path& folder, const std::function<bool()>& stops);

Baseline make_baseline(const std::vector<RunFacts>& facts);

}  // namespace rocemu::explore
