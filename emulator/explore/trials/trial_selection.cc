#include "emulator/explore/trials/trial_selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>
#include <set>

namespace rocemu::explore {
namespace {

bool is_of(const std::vector<std::string>& processes, const std::string& process) {
  if (processes.empty()) return true;
  constexpr size_t kLongestName = 15;  // the kernel keeps at most this many characters, proc(5)
  return std::ranges::any_of(processes, [&](const std::string& one) {
    return process == one || process.starts_with(one.substr(0, kLongestName) + "#");
  });
}

/// Returns whether `only` contains the trial's kind, as "verbs" or "verb", or its kind and name.
bool is_at(const std::vector<std::string>& only, const Trial& trial) {
  if (only.empty()) return true;
  return std::ranges::any_of(only, [&](const std::string& one) {
    const size_t colon = one.find(':');
    const std::string kind = one.substr(0, colon);
    if (kind != trial.kind && kind != trial.kind + "s") return false;
    return colon == std::string::npos || one.substr(colon + 1) == trial.name;
  });
}

}  // namespace

bool is_wanted(const Options& options, const Trial& trial) {
  return is_at(options.only, trial) && is_of(options.processes, trial.process);
}

std::vector<std::string> unmatched_selections(const Options& options,
                                              const std::vector<Trial>& trials) {
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& option, const std::string& value,
                        const std::set<std::string>& there) {
    warnings.push_back(fmt::format(
        "{} {} matches no fault point of the baseline; there {}", option, value,
        there.empty() ? "is none of this kind" : fmt::format("are {}", fmt::join(there, ", "))));
  };
  for (const std::string& one : options.only) {
    const std::string kind = one.substr(0, one.find(':'));
    std::set<std::string> there;
    for (const Trial& trial : trials)
      if (is_at({kind}, trial)) there.insert(kind + ":" + trial.name);
    const auto matches = [&](const Trial& trial) { return is_at({one}, trial); };
    if (std::ranges::none_of(trials, matches)) warn("--only", one, there);
  }
  std::set<std::string> processes;
  for (const Trial& trial : trials)
    if (!trial.process.empty()) processes.insert(trial.process);
  for (const std::string& one : options.processes) {
    const auto matches = [&](const std::string& process) { return is_of({one}, process); };
    if (std::ranges::none_of(processes, matches)) warn("--process", one, processes);
  }
  return warnings;
}

void add_mixtures(std::vector<Trial>& trials, const Options& options) {
  const std::vector<Trial> single = trials;
  if (single.empty() || options.random == 0) return;
  std::mt19937_64 random(options.seed);
  for (size_t i = 0; i < options.random; ++i) {
    Trial mixture;
    const size_t count = 2 + random() % 3;
    for (size_t j = 0; j < count; ++j) {
      const Trial& one = single[random() % single.size()];
      mixture.causes.push_back(one.causes.front());
      mixture.time_ns = std::max(mixture.time_ns, one.time_ns);
    }
    mixture.number = trials.size() + 1;
    mixture.kind = "mixture";
    trials.push_back(std::move(mixture));
  }
}

void add_schedules(std::vector<Trial>& trials, const Options& options) {
  for (size_t i = 1; i <= options.schedules; ++i) {
    Trial trial;
    trial.number = trials.size() + 1;
    trial.kind = "schedule";
    trial.variation.schedule = std::to_string(options.seed + i);
    trials.push_back(std::move(trial));
  }
}

void add_adversaries(std::vector<Trial>& trials, const Options& options) {
  for (size_t i = 0; i < options.adversarial; ++i) {
    for (const std::string& name : options.adversarial_classes) {
      Trial trial;
      trial.number = trials.size() + 1;
      trial.kind = "adversarial";
      trial.variation.adversarial = name;
      trial.variation.seed = options.seed + i;
      trials.push_back(std::move(trial));
    }
  }
}

std::vector<Trial> of_shard(const std::vector<Trial>& trials, const Options& options) {
  std::vector<Trial> selected;
  for (const Trial& trial : trials) {
    if ((trial.number - 1) % options.shards + 1 == options.shard) selected.push_back(trial);
  }
  return selected;
}

}  // namespace rocemu::explore
