// plan.json of a findings folder: what an exploration tries, and the baseline it compares with.
// From it and the results, merge() makes the report where the command is not at hand.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "emulator/explore/findings/exploration_report.h"
#include "emulator/explore/trials/options.h"
#include "emulator/explore/trials/trial.h"

namespace rocemu::explore {

struct PlanFile {
  Json identity;  // the command and what else has to be the same for results to be of one
                  // exploration
  size_t points = 0, classes = 0;
  bool deterministic = true;
  std::vector<RunFacts> baseline;
  std::vector<Trial> trials;
  /// The shrunk trials of findings, by the scenarios of the original trials.
  std::map<std::string, Trial> shrunk = {};

  Summary summary(const std::string& folder, int64_t baseline_ns) const;
};

Json identity_of(const Options& options, const RunFacts& baseline);

/// Throws std::system_error.
void write_plan(const std::filesystem::path& folder, const PlanFile& plan);

/// Throws ExploreError, which names the file, if there is none or it makes no sense.
PlanFile read_plan(const std::filesystem::path& folder);

}  // namespace rocemu::explore
