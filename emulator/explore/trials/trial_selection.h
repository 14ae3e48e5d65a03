// Selects the trials of an exploration: the trials that the user wants and, if requested, mixtures
// and schedules.
#pragma once

#include "emulator/explore/trials/options.h"
#include "emulator/explore/trials/trial.h"

namespace rocemu::explore {

/// Returns a warning for each value of --only and --process that matches none of the trials, with
/// the values that match some.
std::vector<std::string> unmatched_selections(const Options& options,
                                              const std::vector<Trial>& trials);

/// Returns whether the options --only and --process include the trial.
bool is_wanted(const Options& options, const Trial& trial);

/// Adds trials with several faults of the plan each (--random). The same seed gives the same
/// trials.
void add_mixtures(std::vector<Trial>& trials, const Options& options);

/// Adds trials in which runnable threads execute in another order (--schedules).
void add_schedules(std::vector<Trial>& trials, const Options& options);
/// Adds a trial for each class of `rocemu run --adversarial` with each seed (--adversarial).
void add_adversaries(std::vector<Trial>& trials, const Options& options);

/// Returns the trials that this shard must run (--shard).
std::vector<Trial> of_shard(const std::vector<Trial>& trials, const Options& options);

}  // namespace rocemu::explore
