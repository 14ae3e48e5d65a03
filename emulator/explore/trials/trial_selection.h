// Selects the trials of an exploration: those that the user wants, and in addition mixtures and
// schedules.
#pragma once

#include "emulator/explore/trials/options.h"
#include "emulator/explore/trials/trial.h"

namespace rocemu::explore {

/// Returns whether --only and --process allow the trial.
bool is_wanted(const Options& options, const Trial& trial);

/// Adds mixtures of some faults of the plan (--random). The same seed gives the same mixtures.
void add_mixtures(std::vector<Trial>& trials, const Options& options);

/// Adds other orders of runnable threads (--schedules).
void add_schedules(std::vector<Trial>& trials, const Options& options);
/// Adds each class of `rocemu run --adversarial` with each seed (--adversarial).
void add_adversaries(std::vector<Trial>& trials, const Options& options);

/// Returns the trials of this machine's shard (--shard).
std::vector<Trial> of_shard(const std::vector<Trial>& trials, const Options& options);

}  // namespace rocemu::explore
