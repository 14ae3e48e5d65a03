#include "emulator/explore/explore.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "emulator/explore/baseline_runs.h"
#include "emulator/explore/files.h"
#include "emulator/explore/findings/conclusion.h"
#include "emulator/explore/findings/findings_folder.h"
#include "emulator/explore/findings/plan_file.h"
#include "emulator/explore/interrupt_watch.h"
#include "emulator/explore/progress.h"
#include "emulator/explore/trials/budget.h"
#include "emulator/explore/trials/result_store.h"
#include "emulator/explore/trials/shrink_schedule.h"
#include "emulator/explore/trials/trial_selection.h"
#include "emulator/os/temporary_directory.h"

namespace rocemu::explore {
namespace {

namespace fs = std::filesystem;
using Clock = Budget::Clock;

/// A run counts as endless if its recording is at least kEndless times as long as the baseline's
/// recording, and at least kLeastEndless bytes longer.
constexpr uintmax_t kEndless = 50, kLeastEndless = uintmax_t{1} << 20;
constexpr uintmax_t kLeastEndlessJournal = 4 * kLeastEndless;  // it also has the payloads
constexpr int kExitInterrupted = 130;
/// kMaxStops: a run in which the schedule stops threads, or the adversary chooses, more often than
/// this is not shrunk. kMaxShrinkingRuns: the maximum number of runs to shrink one finding.
constexpr size_t kMaxStops = 2000, kMaxShrinkingRuns = 100;

std::string why_stopped() {
  return InterruptWatch::interrupted() ? "interrupted" : "the time of --budget is over";
}

class Exploration {
 public:
  explicit Exploration(const Options& options)
      : options_(options),
        runner_(with_scratch(options)),
        budget_(options.budget, Clock::now(), runner_.jobs()) {}

  int run();

 private:
  RunnerOptions with_scratch(const Options& options) {
    RunnerOptions runs = options.runs;
    runs.scratch = scratch_.path();
    return runs;
  }
  bool stops() const { return InterruptWatch::interrupted() || budget_.is_over(Clock::now()); }
  bool stops_trials() const { return stops() || budget_.is_over_for_trials(Clock::now()); }
  void tell_of_baseline() const;
  int list() const;
  void run_trials();
  Result judged(const Trial& trial, const RunFacts& facts) const {
    return explore::judged(trial, facts, *baseline_, options_.limits);
  }
  void run_all(const std::vector<Job>& jobs, const std::function<void(const Result&)>& on_end);
  void look_again();
  void add_pairs();
  void judge_all();
  void reserve_time(const Result& result);
  void write_scenario(const Finding& finding) const;
  void shrink(Finding& finding);
  void confirm();
  void shrink_order(Finding& finding);
  void shrink_adversary(Finding& finding);
  RunFacts run_shrunk(const Trial& trial);
  void repeat();
  void count_repetitions();
  void draw_timelines() const;
  bool is_all_done() const;
  fs::path folder_of(const Finding& finding) const {
    return fs::path(options_.folder) / std::to_string(finding.number);
  }
  void require_room(const RunFacts& facts) const;
  PlanFile plan_file() const;
  void write_plan();
  std::string processes_text() const;
  int finish();

  const Options& options_;
  TemporaryDirectory scratch_;
  Runner runner_;
  Budget budget_;
  BaselineRuns baseline_runs_;
  std::optional<Baseline> baseline_;
  std::vector<FaultPoint> points_, classes_;
  std::vector<Trial> trials_, selected_;
  std::optional<ResultStore> store_;
  Summary summary_;
  std::map<size_t, Result> results_;
  std::vector<Finding> findings_;
};

void Exploration::tell_of_baseline() const {
  const RunFacts& facts = baseline_->facts;
  std::ostream& out = std::cerr;
  out << fmt::format("baseline: {} runs, {}, {:.6f} s of {} time; {} fault points in {} classes\n",
                     3, baseline_runs_.difference.empty() ? "deterministic" : "NOT deterministic",
                     static_cast<double>(facts.end_ns) / 1e9,
                     options_.runs.lockstep ? "virtual" : "real", points_.size(), classes_.size());
  if (!baseline_runs_.difference.empty())
    out << "the baseline differs from run to run: " + baseline_runs_.difference +
               "\nso a finding may not occur in each run; explore repeats each finding and "
               "reports how many repetitions confirmed it\n";
  const OutputMask& mask = baseline_->output;
  if (mask.is_useless()) {
    out << "the command's output depends on time, even in the number of lines, so explore "
           "does not compare it\n";
  } else if (mask.masked_lines() != 0) {
    out << (mask.masked_lines() == 1
                ? "one kind of line of the command's output depends on time: the numbers in "
                  "these lines are not compared\n"
                : fmt::format(
                      "{} kinds of lines of the command's output depend on time: the numbers in "
                      "these lines are not compared\n",
                      mask.masked_lines()));
  }
  if (baseline_runs_.needs_all_processors)
    out << "the command fails on one processor, so its runs use all processors\n";
  if (!runner_.obstacle().empty() && options_.runs.own_network)
    out << "runs execute one at a time, since this machine does not allow network namespaces (" +
               runner_.obstacle() + ")\n";
}

int Exploration::list() const {
  for (const Trial& trial : selected_) {
    std::cout << fmt::format("{:5} {:12} {:4} {}\n", trial.number, trial.kind, trial.represents,
                             trial.text());
    for (const Cause& cause : trial.causes) std::cout << "      " + cause.rule + "\n";
  }
  std::cout << fmt::format(
      "{} faults at {} fault points in {} classes; the third column is the "
      "number of points that a fault stands for\n",
      selected_.size(), points_.size(), classes_.size());
  return 0;
}

void Exploration::run_trials() {
  std::vector<Job> jobs;
  for (const Trial& trial : selected_)
    if (store_->find(trial.scenario()) == nullptr)
      jobs.push_back(
          {.number = trial.number, .scenario = trial.scenario(), .variation = trial.variation});
  Progress progress(selected_.size(), selected_.size() - jobs.size());
  run_all(jobs, [&](const Result& result) {
    progress.advance(is_finding(result.verdict()));
    reserve_time(result);
  });
  look_again();
}

void Exploration::reserve_time(const Result& result) {
  for (const Judgment& one : result.found())
    budget_.reserve(signature_of(one), result.facts.took,
                    static_cast<size_t>(options_.repetitions));
}

void Exploration::require_room(const RunFacts& facts) const {
  if (facts.trouble.find("No space left") != std::string::npos)
    throw ExploreError(facts.trouble + "\nThe findings so far are in " + options_.folder +
                       "; free some space, and continue with --resume");
}

void Exploration::run_all(const std::vector<Job>& jobs,
                          const std::function<void(const Result&)>& on_end) {
  runner_.run(
      jobs,
      [&](const Job& job, const RunFacts& facts) {
        require_room(facts);
        store_->add(job.scenario, facts);
        on_end(judged(trials_.at(job.number - 1), facts));
      },
      [this] { return stops_trials(); });
}

/// Confirms runs that the usual limit of real time ended. For each place at which it ended runs,
/// repeats one of them with a much longer limit. If the repeated run ends at another place, the
/// machine was too busy, and the other runs that ended at the first place are repeated, too.
void Exploration::look_again() {
  const auto job_of = [](const Trial& trial) {
    return Job{.number = trial.number,
               .scenario = trial.scenario(),
               .variation = trial.variation,
               .patiently = true};
  };
  std::map<std::string, std::vector<const Trial*>> doubtful;
  std::set<std::string> sure;
  const auto place_now = [&](const Trial& trial) {
    return signature_of(judge(*store_->find(trial.scenario()), *baseline_, options_.limits));
  };
  for (const Trial& trial : selected_) {
    const RunFacts* facts = store_->find(trial.scenario());
    if (facts == nullptr) continue;
    if (facts->is_doubtful()) doubtful[place_now(trial)].push_back(&trial);
    if (facts->patiently) sure.insert(place_now(trial));
  }
  std::erase_if(doubtful, [&](const auto& one) { return sure.contains(one.first); });
  std::vector<Job> firsts, others;
  for (const auto& [place, trials] : doubtful) firsts.push_back(job_of(*trials.front()));
  run_all(firsts, [](const Result&) {});
  for (const auto& [place, trials] : doubtful) {
    if (place_now(*trials.front()) == place) continue;
    for (auto next = trials.begin() + 1; next != trials.end(); ++next)
      others.push_back(job_of(**next));
  }
  run_all(others, [](const Result&) {});
}

/// Adds trials with two faults. The second fault is at a point that exists only after the first
/// one, such as a program's second attempt or its handling of errors.
void Exploration::add_pairs() {
  std::set<std::string> there;
  for (const Trial& trial : plan(points_)) there.insert(trial.causes.front().rule);
  std::vector<Job> jobs;
  std::map<size_t, Trial> first_of;
  for (const Trial& trial : selected_) {
    const RunFacts* facts = store_->find(trial.scenario());
    if (facts == nullptr || trial.causes.size() != 1) continue;
    const Verdict verdict = judge(*facts, *baseline_, options_.limits).verdict;
    if (verdict != Verdict::kSurvived && verdict != Verdict::kReported) continue;
    jobs.push_back({.number = trial.number,
                    .scenario = trial.scenario(),
                    .tells_call_sites = true,
                    .keep = scratch_.path() / ("first" + std::to_string(trial.number))});
    first_of.emplace(trial.number, trial);
  }
  std::map<size_t, std::vector<Trial>> seconds_of;
  runner_.run(
      jobs,
      [&](const Job& job, const RunFacts&) {
        RecordedEvents events = read_events(job.keep);
        add_call_sites(events, job.keep, job.keep / kCallSitesFolder);
        for (Trial& second : plan(representatives(fault_points(events))))
          if (!there.contains(second.causes.front().rule))
            seconds_of[job.number].push_back(std::move(second));
        fs::remove_all(job.keep);
      },
      [this] { return stops_trials(); });
  for (auto& [number, seconds] : seconds_of) {
    for (Trial& second : seconds) {
      second.number = trials_.size() + 1;
      second.follows = number;
      second.causes.insert(second.causes.begin(), first_of.at(number).causes.front());
      selected_.push_back(second);
      trials_.push_back(std::move(second));
    }
  }
  write_plan();
  run_trials();
}

void Exploration::judge_all() {
  for (const Trial& trial : selected_) {
    const RunFacts* facts = store_->find(trial.scenario());
    if (facts == nullptr) continue;
    results_[trial.number] = judged(trial, *facts);
  }
}

RunFacts Exploration::run_shrunk(const Trial& trial) {
  const std::string key = trial.repetition_key(0);
  if (const RunFacts* known = store_->find(key)) return *known;
  RunFacts result;
  runner_.run(
      {{.number = 0,
        .scenario = trial.scenario(),
        .variation = trial.variation,
        .tells_variation = true}},
      [&](const Job&, const RunFacts& facts) {
        result = facts;
        store_->add(key, facts);
      },
      [this] { return stops(); });
  return result;
}

/// Removes the stops of threads that the finding does not need from its schedule.
void Exploration::shrink_order(Finding& finding) {
  Trial tried = finding.smallest;
  const auto run = [&](const std::string& schedule) {
    tried.variation.schedule = schedule;
    const RunFacts facts = run_shrunk(tried);
    return ScheduledRun{
        .is_again = !stops() && has_again(finding, facts, *baseline_, options_.limits),
        .stops = facts.stops};
  };
  Variation& variation = finding.smallest.variation;
  const std::string number = variation.schedule;
  const ScheduledRun first = run(number);
  if (!first.is_again || first.stops.size() > kMaxStops) return;
  const ShrunkSchedule shrunk = shrink_schedule(number, first.stops, run, kMaxShrinkingRuns);
  if (shrunk.number.empty() || !run(shrunk.schedule()).is_again) return;
  variation.schedule = shrunk.schedule();
  variation.shrunk = shrunk.text() + " (schedule " + number + ")";
}

/// Removes the adversary's choices that the finding does not need.
void Exploration::shrink_adversary(Finding& finding) {
  Trial tried = finding.smallest;
  const auto run = [&](const std::string& argument) {
    tried.variation.adversarial = argument;
    const RunFacts facts = run_shrunk(tried);
    const bool is_again = !stops() && facts.choices.size() <= kMaxStops &&
                          has_again(finding, facts, *baseline_, options_.limits);
    return AdversarialRun{.is_again = is_again, .choices = facts.choices};
  };
  Variation& variation = finding.smallest.variation;
  const std::string name = variation.adversarial;
  const ShrunkChoices shrunk = shrink_choices(name, run, kMaxShrinkingRuns);
  if (shrunk.argument.empty() || !run(shrunk.argument).is_again) return;
  variation.adversarial = shrunk.argument;
  variation.shrunk = fmt::format("{} ({}, seed {})", shrunk.text, name, variation.seed);
}

/// Removes what the finding does not need: stops of its schedule, choices of its adversary, and
/// causes. The run must still end at the same place.
void Exploration::shrink(Finding& finding) {
  const Variation& variation = finding.smallest.variation;
  if (!variation.schedule.empty()) shrink_order(finding);
  if (!variation.adversarial.empty()) shrink_adversary(finding);
  for (size_t i = 0; finding.smallest.causes.size() > 1 && i < finding.smallest.causes.size();) {
    Trial fewer = finding.smallest;
    fewer.causes.erase(fewer.causes.begin() + static_cast<ptrdiff_t>(i));
    const RunFacts facts = run_shrunk(fewer);
    if (stops()) return;
    if (has_again(finding, facts, *baseline_, options_.limits)) {
      finding.smallest = std::move(fewer);
    } else {
      ++i;
    }
  }
}

/// Returns the tool that reads stacks for a finding. A hang only needs the functions of the
/// threads; a crash also needs values, which take longer to read.
StackTool stacks_for(const Finding& finding) {
  return finding.verdict == Verdict::kCrash ? StackTool::kGdb : StackTool::kEuStack;
}

/// Writes the files that reproduce a finding. This is done before any further step that may be
/// interrupted.
void Exploration::write_scenario(const Finding& finding) const {
  fs::create_directories(folder_of(finding));
  write_file(folder_of(finding) / "scenario.yaml", finding.smallest.scenario());
}

/// Runs the repetitions of findings that are missing. The files of a finding's first repetition are
/// kept. Findings with short runs come first, because the budget may end before all repetitions are
/// done.
void Exploration::repeat() {
  std::vector<Job> jobs;
  std::vector<std::string> keys;
  std::vector<const Finding*> quick_first;
  for (const Finding& finding : findings_) quick_first.push_back(&finding);
  std::ranges::stable_sort(quick_first, {}, [&](const Finding* finding) {
    return finding->triggers.empty() ? baseline_->facts.took
                                     : results_.at(finding->triggers.front()).facts.took;
  });
  for (const Finding* const next : quick_first) {
    const Finding& finding = *next;
    const Trial& trial = finding.smallest;
    for (int i = 1; i <= options_.repetitions; ++i) {
      const std::string key = trial.repetition_key(i);
      if (i > 1 && store_->find(key) != nullptr) continue;
      Job job{.number = keys.size(), .scenario = trial.scenario(), .variation = trial.variation};
      if (i == 1) {
        job.keep = folder_of(finding);
        job.stacks_by = stacks_for(finding);
      }
      jobs.push_back(std::move(job));
      keys.push_back(key);
    }
  }
  runner_.run(
      jobs,
      [&](const Job& job, const RunFacts& facts) {
        require_room(facts);
        store_->add(keys[job.number], facts);
      },
      [this] { return stops(); });
}

void Exploration::count_repetitions() {
  for (Finding& finding : findings_) {
    for (int i = 1; i <= options_.repetitions; ++i) {
      const RunFacts* facts = store_->find(finding.smallest.repetition_key(i));
      if (facts == nullptr) continue;
      ++finding.repetitions;
      if (has_again(finding, *facts, *baseline_, options_.limits)) ++finding.confirmed;
    }
  }
}

/// Writes a page with the timeline of each recording, unless that would take too long.
void Exploration::draw_timelines() const {
  for (const Finding& finding : findings_) {
    if (!fs::exists(folder_of(finding) / "journal")) continue;
    const std::string page = folder_of(finding) / "timeline.html";
    if (!runner_.call({"timeline", folder_of(finding), "--html", page}, [this] { return stops(); }))
      fs::remove(page);
  }
}

/// Shrinks and repeats the findings as far as time allows, and writes the files of each finding.
void Exploration::confirm() {
  std::vector<std::string> scenarios;
  for (const Finding& finding : findings_) scenarios.push_back(finding.smallest.scenario());
  remove_findings_but(scenarios, options_.folder);
  for (const Finding& finding : findings_) write_scenario(finding);
  std::map<std::string, Trial> shrunk;
  for (Finding& finding : findings_) {
    if (stops()) break;
    const std::string before = finding.smallest.scenario();
    shrink(finding);
    write_scenario(finding);
    if (finding.smallest.scenario() != before) shrunk.emplace(before, finding.smallest);
  }
  PlanFile with_shrunk = plan_file();
  with_shrunk.shrunk = std::move(shrunk);
  explore::write_plan(options_.folder, with_shrunk);
  if (!stops()) repeat();
  count_repetitions();
  for (const Finding& finding : findings_) {
    write_file(folder_of(finding) / "report.txt", report_on(summary_, finding));
  }
  draw_timelines();
}

PlanFile Exploration::plan_file() const {
  return {.identity = identity_of(options_, baseline_->facts),
          .points = points_.size(),
          .classes = classes_.size(),
          .deterministic = baseline_runs_.difference.empty(),
          .baseline = baseline_runs_.facts,
          .trials = trials_};
}

void Exploration::write_plan() {
  explore::write_plan(options_.folder, plan_file());
  summary_ = plan_file().summary(options_.folder, baseline_->facts.end_ns);
}

std::string Exploration::processes_text() const {
  std::set<std::string> names;
  for (const FaultPoint& point : points_)
    if (!point.process.empty()) names.insert(point.process);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

bool Exploration::is_all_done() const {
  return summary_.not_tried.empty() && std::ranges::all_of(findings_, [&](const Finding& finding) {
           return finding.repetitions == options_.repetitions;
         });
}

int Exploration::finish() {
  judge_all();
  for (const Trial& trial : selected_)
    if (!results_.contains(trial.number)) summary_.not_tried.push_back(trial);
  findings_ = group(results_, baseline_->misuses);
  confirm();
  if (!is_all_done()) summary_.stopped = why_stopped();
  const int status = conclude(options_, summary_, results_, findings_);
  return InterruptWatch::interrupted() ? kExitInterrupted : status;
}

int Exploration::run() {
  const InterruptWatch watch;
  if (!options_.known.empty()) read_known(options_.known);  // throws now, and not after hours
  prepare_folder(options_);
  const auto stops_now = [this] { return stops(); };
  try {
    baseline_runs_ = run_baseline(runner_, options_, options_.folder, stops_now);
  } catch (...) {
    discard_baseline(options_.folder);
    throw;
  }
  if (InterruptWatch::interrupted()) {
    discard_baseline(options_.folder);
    std::cerr << "interrupted before the baseline was complete: there are no findings yet\n";
    return kExitInterrupted;
  }
  if (stops()) {
    discard_baseline(options_.folder);
    throw ExploreError(why_stopped() +
                       " before the baseline was complete: there are no findings yet");
  }
  baseline_ = make_baseline(baseline_runs_.facts);
  runner_.set_most_recorded(kLeastEndless + kEndless * baseline_runs_.events_bytes,
                            kLeastEndlessJournal + kEndless * baseline_runs_.journal_bytes);
  points_ = fault_points(baseline_runs_.events);
  classes_ = representatives(points_);
  std::vector<Trial> planned = plan(classes_);
  for (const std::string& warning : unmatched_selections(options_, planned))
    std::cerr << "rocemu: warning: explore: " + warning + "\n";
  for (Trial& trial : planned) {
    if (!is_wanted(options_, trial)) continue;
    trial.number = trials_.size() + 1;
    trials_.push_back(std::move(trial));
  }
  const bool has_variations = options_.schedules != 0 || options_.adversarial != 0;
  if (trials_.empty() && !points_.empty() && !has_variations) {
    if (!fs::exists(fs::path(options_.folder) / kResultsFile)) discard_baseline(options_.folder);
    throw ExploreError("--only and --process exclude all faults at " +
                       std::to_string(points_.size()) + " fault points of " + processes_text() +
                       "; `rocemu explore --list` without these options shows all faults");
  }
  add_mixtures(trials_, options_);
  add_schedules(trials_, options_);
  add_adversaries(trials_, options_);
  selected_ = of_shard(trials_, options_);
  tell_of_baseline();
  if (options_.lists) {
    if (!fs::exists(fs::path(options_.folder) / kResultsFile)) discard_baseline(options_.folder);
    return list();
  }
  store_.emplace(fs::path(options_.folder) / kResultsFile, identity_of(options_, baseline_->facts),
                 options_.resume);
  write_plan();
  run_trials();
  if (options_.depth > 1 && !stops_trials()) add_pairs();
  return finish();
}

}  // namespace

int explore(const Options& options) {
  return Exploration(options).run();
}

}  // namespace rocemu::explore
