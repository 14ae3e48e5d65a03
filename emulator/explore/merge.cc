#include <algorithm>

#include "emulator/explore/baseline_runs.h"
#include "emulator/explore/explore.h"
#include "emulator/explore/files.h"
#include "emulator/explore/findings/conclusion.h"
#include "emulator/explore/findings/findings_folder.h"
#include "emulator/explore/findings/plan_file.h"
#include "emulator/explore/trials/result_store.h"

namespace rocemu::explore {
namespace fs = std::filesystem;
namespace {

/// Returns the trials of all shards, numbered as on a single machine.
std::vector<Trial> merged_trials(const std::vector<PlanFile>& plans,
                                 const std::vector<std::string>& folders) {
  std::vector<Trial> trials, seconds;
  for (size_t i = 0; i < plans.size(); ++i) {
    std::vector<Trial> its;
    for (const Trial& trial : plans[i].trials)
      (trial.follows == 0 ? its : seconds).push_back(trial);
    if (i == 0)
      trials = std::move(its);
    else if (!std::ranges::equal(trials, its, {}, &Trial::scenario, &Trial::scenario))
      throw ExploreError(folders[i] + " and " + folders[0] +
                         " belong to different explorations: their faults differ");
  }
  std::ranges::stable_sort(seconds, {}, &Trial::follows);
  for (Trial& second : seconds) {
    second.number = trials.size() + 1;
    trials.push_back(std::move(second));
  }
  return trials;
}

/// Copies the finding's folder from the shard that confirmed the finding, since only this shard has
/// the recording and outputs.
void copy_folder_of(const Finding& finding, const std::vector<std::string>& from,
                    const fs::path& to) {
  for (const std::string& folder : from) {
    for (size_t number = 1;; ++number) {
      const fs::path one = fs::path(folder) / std::to_string(number);
      if (!fs::exists(one / "scenario.yaml")) break;
      if (contents_of(one / "scenario.yaml") != finding.smallest.scenario()) continue;
      fs::copy(one, to / std::to_string(finding.number),
               fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    }
  }
}

}  // namespace

int merge(const std::vector<std::string>& folders, const Options& options) {
  std::vector<PlanFile> plans;
  for (const std::string& folder : folders) {
    plans.push_back(read_plan(folder));
    if (!fs::exists(fs::path(folder) / kResultsFile))
      throw ExploreError(folder + " has no results.jsonl: its exploration has not begun");
  }
  PlanFile plan = plans.front();
  plan.trials = merged_trials(plans, folders);
  prepare_folder(options);
  const Baseline baseline = make_baseline(plan.baseline);
  ResultStore store(fs::path(options.folder) / kResultsFile, plan.identity, /*resumes=*/false);
  for (const std::string& folder : folders)
    store.merge(fs::path(folder) / kResultsFile, plan.identity);
  write_plan(options.folder, plan);
  std::map<size_t, Result> results;
  for (const Trial& trial : plan.trials) {
    const RunFacts* found = store.find(trial.scenario());
    if (found != nullptr) results[trial.number] = judged(trial, *found, baseline, options.limits);
  }
  Summary summary = plan.summary(options.folder, baseline.facts.end_ns);
  for (const Trial& trial : plan.trials)
    if (!results.contains(trial.number)) summary.not_tried.push_back(trial);
  if (!summary.not_tried.empty()) summary.stopped = "the shards are incomplete";
  std::vector<Finding> findings = group(results, baseline.misuses);
  for (Finding& finding : findings) {
    for (const PlanFile& one : plans) {
      const auto less = one.shrunk.find(finding.smallest.scenario());
      if (less == one.shrunk.end()) continue;
      finding.smallest = less->second;
      break;
    }
    for (int i = 1; i <= options.repetitions; ++i) {
      const RunFacts* again = store.find(finding.smallest.repetition_key(i));
      if (again == nullptr) continue;
      ++finding.repetitions;
      if (has_again(finding, *again, baseline, options.limits)) ++finding.confirmed;
    }
    copy_folder_of(finding, folders, options.folder);
    // The copied folder can be that of another finding with the same scenario. All of its files are
    // the same except report.txt, so that file is written again.
    const fs::path folder = fs::path(options.folder) / std::to_string(finding.number);
    if (fs::exists(folder)) write_file(folder / "report.txt", report_on(summary, finding));
  }
  return conclude(options, summary, results, findings);
}

}  // namespace rocemu::explore
