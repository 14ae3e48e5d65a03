// Which trials an exploration runs: those that the user wants, and mixtures and schedules besides.
#pragma once

#include "emulator/explore/trials/options.h"
#include "emulator/explore/trials/trial.h"

namespace rocemu::explore {

/// --only and --process leave it in.
bool is_wanted(const Options& options, const Trial& trial);

/// Mixtures of some faults of the plan (--random), the same for the same seed.
void add_mixtures(std::vector<Trial>& trials, const Options& options);

/// Adds other orders of runnable threads (--schedules).
void add_schedules(std::vector<Trial>& trials, const Options& options);
/// Each class of `rocemu run --adversarial` with each seed (--adversarial).
void add_adversaries(std::vector<Trial>& trials, const Options& options);

/// Returns the trials of this machine's shard (--shard).
std::vector<Trial> of_shard(const std::vector<Trial>& trials, const Options& options);

}  // namespace rocemu::explore
