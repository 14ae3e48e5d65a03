#include "emulator/explore/explore.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iostream>
#include <random>

#include "emulator/explore/baseline_runs.h"
#include "emulator/explore/findings.h"
#include "emulator/explore/progress.h"
#include "emulator/explore/report.h"
#include "emulator/explore/result_store.h"
#include "emulator/explore/trial.h"

namespace rocemu::explore {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr char kResultsFile[] = "results.jsonl";
constexpr char kPlanFile[] = "plan.json";
/// A run whose recording is so many times as long as the baseline's, and longer than that besides,
/// has no end.
constexpr uintmax_t kEndless = 50, kLeastEndless = uintmax_t{4} << 20;
constexpr int kExitFound = 1, kExitInterrupted = 130;

std::atomic<bool> interrupted = false;

/// While it exists, the first Ctrl-C asks for an orderly end, and the second ends us.
class InterruptWatch {
 public:
  InterruptWatch() {
    interrupted = false;
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = true; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &int_before_);
    sigaction(SIGTERM, &action, &term_before_);
  }
  ~InterruptWatch() {
    sigaction(SIGINT, &int_before_, nullptr);
    sigaction(SIGTERM, &term_before_, nullptr);
  }
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

 private:
  struct sigaction int_before_ {
  }, term_before_{};
};

class Scratch {
 public:
  Scratch() {
    std::error_code error;
    std::string name = fs::temp_directory_path(error).string() + "/rocemu-explore-XXXXXX";
    if (error || mkdtemp(name.data()) == nullptr)
      throw ExploreError("cannot make a temporary directory in " +
                         fs::temp_directory_path(error).string());
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// Removes what explorations make in a folder, and nothing else.
void clear_folder(const fs::path& folder) {
  for (const char* name : {kResultsFile, kPlanFile, "report.txt", "report.json", "report.xml",
                           "report.sarif", "report.html"})
    fs::remove(folder / name);
  fs::remove_all(folder / "baseline");
  for (size_t number = 1; fs::exists(folder / std::to_string(number) / "scenario.yaml"); ++number)
    fs::remove_all(folder / std::to_string(number));
}

void prepare_folder(const Options& options) {
  const fs::path folder = options.folder;
  if (fs::exists(folder) && !fs::is_directory(folder))
    throw ExploreError(options.folder + " is there already, and is no directory");
  const bool has_results = fs::exists(folder / kResultsFile);
  if (has_results && !options.resume && !options.force)
    throw ExploreError(options.folder +
                       " has the findings of an earlier exploration: --resume goes on with it, "
                       "--force replaces it, --output DIR puts the new ones elsewhere");
  if (!has_results && fs::exists(folder) && !fs::is_empty(folder) && !options.force)
    throw ExploreError(options.folder +
                       " is there already, and is none that rocemu explore made: give another "
                       "--output DIR");
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw ExploreError("cannot make " + options.folder + ": " + error.message());
  if (has_results && options.force && !options.resume) clear_folder(folder);
}

bool is_of(const std::vector<std::string>& processes, const std::string& process) {
  if (processes.empty()) return true;
  return std::ranges::any_of(processes, [&](const std::string& one) {
    return process == one || process.starts_with(one + "#");
  });
}

/// "verbs" means "verb", too.
bool is_at(const std::vector<std::string>& only, const Trial& trial) {
  if (only.empty()) return true;
  return std::ranges::any_of(only, [&](const std::string& one) {
    const size_t colon = one.find(':');
    const std::string kind = one.substr(0, colon);
    if (kind != trial.kind && kind != trial.kind + "s") return false;
    return colon == std::string::npos || one.substr(colon + 1) == trial.name;
  });
}

bool is_wanted(const Options& options, const Trial& trial) {
  return is_at(options.only, trial) && is_of(options.processes, trial.process);
}

/// Mixtures of some faults of the plan, the same for the same seed.
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

/// Other orders in which threads go on that could go on at the same time.
void add_schedules(std::vector<Trial>& trials, const Options& options) {
  for (size_t i = 1; i <= options.schedules; ++i) {
    Trial trial;
    trial.number = trials.size() + 1;
    trial.kind = "schedule";
    trial.schedule = options.seed + i;
    trials.push_back(std::move(trial));
  }
}

std::string key_of_repetition(const Trial& trial, int number) {
  return fmt::format("again {} {}", number, trial.scenario());
}

class Exploration {
 public:
  explicit Exploration(const Options& options)
      : options_(options), begun_(Clock::now()), runner_(with_scratch(options)) {}

  int run();

 private:
  RunnerOptions with_scratch(const Options& options) {
    RunnerOptions runs = options.runs;
    runs.scratch = scratch_.path();
    return runs;
  }
  bool stops() const {
    return interrupted || (options_.budget && Clock::now() - begun_ > *options_.budget);
  }
  std::string why_stopped() const {
    if (interrupted) return "interrupted";
    return stops() ? "the time of --budget is over" : "";
  }
  void tell_of_baseline() const;
  void select();
  int list() const;
  void run_trials();
  void run_all(const std::vector<Job>& jobs, const std::function<void(const RunFacts&)>& on_end);
  void look_again();
  void add_pairs();
  void judge_all();
  void shrink(Finding& finding);
  void confirm();
  RunFacts run_one(const Trial& trial, int repetition, const fs::path& keep = {});
  void write_plan() const;
  int finish();

  const Options& options_;
  Clock::time_point begun_;
  Scratch scratch_;
  Runner runner_;
  BaselineRuns baseline_runs_;
  std::optional<Baseline> baseline_;
  std::vector<FaultPoint> points_, classes_;
  std::vector<Trial> trials_, selected_;
  std::optional<ResultStore> store_;
  Summary summary_;
  std::map<size_t, Result> results_;
  std::vector<Finding> findings_;
};

Json identity_of(const Options& options, const RunFacts& baseline) {
  Json identity;
  identity["rocemu"] = ROCEMU_VERSION;
  identity["command"] = options.runs.command;
  identity["fabric"] = options.runs.fabric;
  identity["lockstep"] = options.runs.lockstep;
  identity["seed"] = options.seed;
  identity["random"] = options.random;
  identity["schedules"] = options.schedules;
  identity["baseline_events"] = baseline.events;
  return identity;
}

void set_known(std::vector<Finding>& findings, const std::string& file) {
  if (file.empty()) return;
  std::ifstream stream(file);
  const Json json = Json::parse(stream, nullptr, false);
  if (json.is_discarded() || !json.contains("findings"))
    throw ExploreError("--known " + file +
                       " is no report.json of rocemu explore; copy one from a findings folder");
  std::set<std::string> places;
  for (const Json& one : json["findings"]) places.insert(one.value("place", ""));
  for (Finding& finding : findings) finding.known = places.contains(finding.place);
}

int exit_status(const std::vector<Finding>& findings, const std::set<Verdict>& fails_on) {
  const bool fails = std::ranges::any_of(findings, [&](const Finding& finding) {
    return !finding.known && fails_on.contains(finding.verdict);
  });
  return fails ? kExitFound : 0;
}

void print(const Options& options, const Summary& summary, const std::map<size_t, Result>& results,
           const std::vector<Finding>& findings) {
  std::cout << (options.json ? report_as_json(summary, results, findings).dump(2) + "\n"
                             : report_as_text(summary, results, findings))
            << std::flush;
}

void Exploration::tell_of_baseline() const {
  const RunFacts& facts = baseline_->facts;
  std::ostream& out = std::cerr;
  out << fmt::format(
      "baseline: {} runs, {}, {:.6f} s of virtual time; {} fault points in {} "
      "classes\n",
      3, baseline_runs_.difference.empty() ? "deterministic" : "NOT deterministic",
      static_cast<double>(facts.end_ns) / 1e9, points_.size(), classes_.size());
  if (!baseline_runs_.difference.empty())
    out << "the baseline differs from run to run: " + baseline_runs_.difference +
               "\nso a finding may not come each time; each is repeated, and its rate told\n";
  const OutputMask& mask = baseline_->output;
  if (mask.is_useless()) {
    out << "its output depends on time, even in how many lines it has: it is not compared\n";
  } else if (mask.masked_lines() != 0) {
    out << fmt::format(
        "{} kinds of lines of its output depend on time: their numbers are not "
        "compared\n",
        mask.masked_lines());
  }
  if (!runner_.obstacle().empty() && options_.runs.own_network)
    out << "runs go one at a time, since this machine gives them no network of their own (" +
               runner_.obstacle() + ")\n";
}

void Exploration::select() {
  for (const Trial& trial : trials_) {
    if ((trial.number - 1) % options_.shards + 1 == options_.shard) selected_.push_back(trial);
  }
}

int Exploration::list() const {
  for (const Trial& trial : selected_) {
    std::cout << fmt::format("{:5} {:12} {:4} {}\n", trial.number, trial.kind, trial.represents,
                             trial.text());
    for (const Cause& cause : trial.causes) std::cout << "      " + cause.rule + "\n";
  }
  std::cout << fmt::format(
      "{} faults at {} fault points in {} classes; the third column is how "
      "many points each stands for\n",
      selected_.size(), points_.size(), classes_.size());
  return 0;
}

void Exploration::run_trials() {
  std::vector<Job> jobs;
  for (const Trial& trial : selected_)
    if (store_->find(trial.scenario()) == nullptr)
      jobs.push_back(
          {.number = trial.number, .scenario = trial.scenario(), .schedule = trial.schedule});
  Progress progress(selected_.size(), selected_.size() - jobs.size());
  run_all(jobs, [&](const RunFacts& facts) {
    progress.advance(is_finding(judge(facts, *baseline_, options_.limits).verdict));
  });
  look_again();
}

void Exploration::run_all(const std::vector<Job>& jobs,
                          const std::function<void(const RunFacts&)>& on_end) {
  runner_.run(
      jobs,
      [&](const Job& job, const RunFacts& facts) {
        if (facts.trouble.find("No space left") != std::string::npos)
          throw ExploreError(facts.trouble + "\nWhat was found so far is kept in " +
                             options_.folder + "; make room, and go on with --resume");
        store_->add(job.scenario, facts);
        on_end(facts);
      },
      [this] { return stops(); });
}

/// Of the runs that real time has ended, one for each place is done again with far more of it. If
/// that one ends elsewhere the machine was too busy, and all of that place are done again.
void Exploration::look_again() {
  const auto job_of = [](const Trial& trial) {
    return Job{.number = trial.number,
               .scenario = trial.scenario(),
               .schedule = trial.schedule,
               .patiently = true};
  };
  std::map<std::string, std::vector<const Trial*>> doubtful;
  std::set<std::string> sure;
  const auto place_now = [&](const Trial& trial) {
    return place_of(judge(*store_->find(trial.scenario()), *baseline_, options_.limits));
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
  run_all(firsts, [](const RunFacts&) {});
  for (const auto& [place, trials] : doubtful) {
    if (place_now(*trials.front()) == place) continue;
    for (auto next = trials.begin() + 1; next != trials.end(); ++next)
      others.push_back(job_of(**next));
  }
  run_all(others, [](const RunFacts&) {});
}

/// A second fault at the points that a first one brings forth: a program's second attempt, and its
/// handling of errors.
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
                    .keep = scratch_.path() / ("first" + std::to_string(trial.number))});
    first_of.emplace(trial.number, trial);
  }
  std::map<size_t, std::vector<Trial>> seconds_of;
  runner_.run(
      jobs,
      [&](const Job& job, const RunFacts&) {
        for (Trial& second : plan(representatives(fault_points(read_events(job.keep)))))
          if (!there.contains(second.causes.front().rule))
            seconds_of[job.number].push_back(std::move(second));
        fs::remove_all(job.keep);
      },
      [this] { return stops(); });
  for (auto& [number, seconds] : seconds_of) {
    for (Trial& second : seconds) {
      second.number = trials_.size() + 1;
      second.follows = number;
      second.causes.insert(second.causes.begin(), first_of.at(number).causes.front());
      selected_.push_back(second);
      trials_.push_back(std::move(second));
    }
  }
  summary_.trials = trials_.size();
  write_plan();
  run_trials();
}

void Exploration::judge_all() {
  for (const Trial& trial : selected_) {
    const RunFacts* facts = store_->find(trial.scenario());
    if (facts == nullptr) continue;
    results_[trial.number] = {trial, *facts, judge(*facts, *baseline_, options_.limits)};
  }
}

RunFacts Exploration::run_one(const Trial& trial, int repetition, const fs::path& keep) {
  const std::string key = key_of_repetition(trial, repetition);
  const RunFacts* known = store_->find(key);
  if (known != nullptr && (keep.empty() || fs::exists(keep / "scenario.yaml"))) return *known;
  RunFacts result;
  runner_.run(
      {{.number = 0, .scenario = trial.scenario(), .schedule = trial.schedule, .keep = keep}},
      [&](const Job&, const RunFacts& facts) {
        result = facts;
        store_->add(key, facts);
      },
      [] { return interrupted.load(); });
  return result;
}

/// Causes that change nothing of where it ends go.
void Exploration::shrink(Finding& finding) {
  for (size_t i = 0; finding.smallest.causes.size() > 1 && i < finding.smallest.causes.size();) {
    Trial fewer = finding.smallest;
    fewer.causes.erase(fewer.causes.begin() + static_cast<ptrdiff_t>(i));
    const RunFacts facts = run_one(fewer, 0);
    if (interrupted) return;
    if (place_of(judge(facts, *baseline_, options_.limits)) == finding.place) {
      finding.smallest = std::move(fewer);
    } else {
      ++i;
    }
  }
}

void Exploration::confirm() {
  for (Finding& finding : findings_) {
    shrink(finding);
    const fs::path keep = fs::path(options_.folder) / std::to_string(finding.number);
    fs::remove_all(keep);
    for (int i = 1; i <= options_.repetitions; ++i) {
      const RunFacts facts = run_one(finding.smallest, i, i == 1 ? keep : fs::path());
      if (interrupted) return;
      ++finding.repetitions;
      if (place_of(judge(facts, *baseline_, options_.limits)) == finding.place) ++finding.confirmed;
    }
    std::ofstream(keep / "report.txt") << finding.sentence() << "\n"
                                       << reproduce_line(summary_, finding) << "\n";
  }
}

/// What merge() needs where the command is not at hand.
void Exploration::write_plan() const {
  Json json;
  json["identity"] = identity_of(options_, baseline_->facts);
  json["points"] = points_.size();
  json["classes"] = classes_.size();
  json["deterministic"] = baseline_runs_.difference.empty();
  Json facts = Json::array(), trials = Json::array();
  for (const RunFacts& one : baseline_runs_.facts) facts.push_back(one.to_json());
  for (const Trial& trial : trials_) trials.push_back(trial.to_json());
  json["baseline"] = facts;
  json["trials"] = trials;
  std::ofstream(fs::path(options_.folder) / kPlanFile) << json.dump() << "\n";
}

int Exploration::finish() {
  summary_.stopped = why_stopped();
  judge_all();
  findings_ = group(results_);
  if (!interrupted) confirm();
  set_known(findings_, options_.known);
  write_reports(options_.folder, summary_, results_, findings_);
  print(options_, summary_, results_, findings_);
  return interrupted ? kExitInterrupted : exit_status(findings_, options_.fails_on);
}

int Exploration::run() {
  const InterruptWatch watch;
  prepare_folder(options_);
  const auto stops_now = [this] { return stops(); };
  try {
    baseline_runs_ = run_baseline(runner_, options_, options_.folder, stops_now);
  } catch (...) {
    // Nothing was found yet: a folder without results would be in the way of the next attempt.
    std::error_code ignored;
    fs::remove_all(fs::path(options_.folder) / "baseline", ignored);
    fs::remove(options_.folder, ignored);
    throw;
  }
  if (stops()) {
    std::error_code ignored;
    fs::remove_all(fs::path(options_.folder) / "baseline", ignored);
    fs::remove(options_.folder, ignored);
    throw ExploreError(why_stopped() + " before the baseline was done: nothing was found yet");
  }
  baseline_ = make_baseline(baseline_runs_.facts);
  runner_.set_most_recorded(kLeastEndless + kEndless * baseline_runs_.recorded_bytes);
  points_ = fault_points(baseline_runs_.events);
  classes_ = representatives(points_);
  for (Trial& trial : plan(classes_)) {
    if (!is_wanted(options_, trial)) continue;
    trial.number = trials_.size() + 1;
    trials_.push_back(std::move(trial));
  }
  add_mixtures(trials_, options_);
  add_schedules(trials_, options_);
  select();
  tell_of_baseline();
  if (options_.lists) {
    std::error_code ignored;
    if (!fs::exists(fs::path(options_.folder) / kResultsFile)) {
      fs::remove_all(fs::path(options_.folder) / "baseline", ignored);
      fs::remove(options_.folder, ignored);
    }
    return list();
  }
  summary_ = {.command = options_.runs.command,
              .fabric = options_.runs.fabric,
              .lockstep = options_.runs.lockstep,
              .folder = options_.folder,
              .points = points_.size(),
              .classes = classes_.size(),
              .trials = trials_.size(),
              .baseline_ns = baseline_->facts.end_ns,
              .deterministic = baseline_runs_.difference.empty(),
              .stopped = {}};
  store_.emplace(fs::path(options_.folder) / kResultsFile, identity_of(options_, baseline_->facts),
                 options_.resume);
  write_plan();
  run_trials();
  if (options_.depth > 1 && !stops()) add_pairs();
  return finish();
}

}  // namespace

int explore(const Options& options) {
  return Exploration(options).run();
}

/// Those of all shards, numbered as one machine does.
std::vector<Trial> merged_trials(const std::vector<Json>& plans,
                                 const std::vector<std::string>& folders) {
  std::vector<Trial> trials, seconds;
  for (size_t i = 0; i < plans.size(); ++i) {
    std::vector<Trial> its;
    for (const Json& one : plans[i].at("trials")) {
      Trial trial = Trial::from_json(one);
      (trial.follows == 0 ? its : seconds).push_back(std::move(trial));
    }
    if (i == 0)
      trials = std::move(its);
    else if (!std::ranges::equal(trials, its, {}, &Trial::scenario, &Trial::scenario))
      throw ExploreError(folders[i] + " and " + folders[0] +
                         " are not of one exploration: the faults to be tried differ");
  }
  std::ranges::stable_sort(seconds, {}, &Trial::follows);
  for (Trial& second : seconds) {
    second.number = trials.size() + 1;
    trials.push_back(std::move(second));
  }
  return trials;
}

int merge(const std::vector<std::string>& folders, const Options& options) {
  prepare_folder(options);
  std::vector<Json> plans;
  for (const std::string& folder : folders) {
    std::ifstream stream(fs::path(folder) / kPlanFile);
    plans.push_back(Json::parse(stream, nullptr, false));
    if (plans.back().is_discarded() || !fs::exists(fs::path(folder) / kResultsFile))
      throw ExploreError(folder +
                         " has no plan.json and results.jsonl: it is no folder of rocemu "
                         "explore");
  }
  Json& json = plans.front();
  const Json identity = json.at("identity");
  std::vector<RunFacts> facts;
  for (const Json& one : json.at("baseline")) facts.push_back(RunFacts::from_json(one));
  const Baseline baseline = make_baseline(facts);
  const std::vector<Trial> trials = merged_trials(plans, folders);
  ResultStore store(fs::path(options.folder) / kResultsFile, identity, /*resumes=*/false);
  for (const std::string& folder : folders) store.merge(fs::path(folder) / kResultsFile, identity);
  Json all = Json::array();
  for (const Trial& trial : trials) all.push_back(trial.to_json());
  json["trials"] = all;
  std::ofstream(fs::path(options.folder) / kPlanFile) << json.dump() << "\n";
  Summary summary{.command = identity.at("command").get<std::vector<std::string>>(),
                  .fabric = identity.at("fabric").get<std::vector<std::string>>(),
                  .lockstep = identity.at("lockstep"),
                  .folder = options.folder,
                  .points = json.at("points"),
                  .classes = json.at("classes"),
                  .trials = trials.size(),
                  .baseline_ns = baseline.facts.end_ns,
                  .deterministic = json.at("deterministic"),
                  .stopped = {}};
  std::map<size_t, Result> results;
  for (const Trial& trial : trials) {
    const RunFacts* found = store.find(trial.scenario());
    if (found != nullptr)
      results[trial.number] = {trial, *found, judge(*found, baseline, options.limits)};
  }
  std::vector<Finding> findings = group(results);
  for (Finding& finding : findings) {
    for (int i = 1; i <= options.repetitions; ++i) {
      const RunFacts* again = store.find(key_of_repetition(finding.smallest, i));
      if (again == nullptr) continue;
      ++finding.repetitions;
      if (place_of(judge(*again, baseline, options.limits)) == finding.place) ++finding.confirmed;
    }
    for (const std::string& folder : folders) {
      for (size_t number = 1;; ++number) {
        const fs::path from = fs::path(folder) / std::to_string(number);
        if (!fs::exists(from / "scenario.yaml")) break;
        std::ifstream scenario(from / "scenario.yaml");
        const std::string text{std::istreambuf_iterator<char>(scenario), {}};
        if (text != finding.smallest.scenario()) continue;
        fs::copy(from, fs::path(options.folder) / std::to_string(finding.number),
                 fs::copy_options::recursive | fs::copy_options::overwrite_existing);
      }
    }
  }
  set_known(findings, options.known);
  write_reports(options.folder, summary, results, findings);
  print(options, summary, results, findings);
  return exit_status(findings, options.fails_on);
}

}  // namespace rocemu::explore
