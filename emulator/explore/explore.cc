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
bool is_kind(const std::vector<std::string>& only, const std::string& kind) {
  if (only.empty()) return true;
  return std::ranges::any_of(
      only, [&](const std::string& one) { return one == kind || one == kind + "s"; });
}

/// Mixtures of some faults of the plan, the same for the same seed.
void add_mixtures(std::vector<Trial>& trials, const Options& options) {
  const std::vector<Trial> single = trials;
  if (single.empty()) return;
  std::mt19937_64 random(options.seed);
  for (size_t i = 0; i < options.random; ++i) {
    Trial mixture;
    const size_t count = 2 + random() % 3;
    std::string rules;
    for (size_t j = 0; j < count; ++j) {
      const Trial& one = single[random() % single.size()];
      mixture.text += (j == 0 ? "" : ", and ") + one.text;
      const size_t rule = one.scenario.find("  - ");
      rules += one.scenario.substr(rule);
      mixture.time_ns = std::max(mixture.time_ns, one.time_ns);
    }
    mixture.number = trials.size() + 1;
    mixture.kind = "mixture";
    mixture.scenario = "# " + mixture.text + "\nrules:\n" + rules;
    trials.push_back(std::move(mixture));
  }
}

/// Each rule of a scenario alone.
std::vector<std::string> rules_of(const std::string& scenario) {
  std::vector<std::string> rules;
  size_t at = scenario.find("  - ");
  while (at != std::string::npos) {
    const size_t next = scenario.find("\n  - ", at);
    rules.push_back(next == std::string::npos ? scenario.substr(at)
                                              : scenario.substr(at, next + 1 - at));
    at = next == std::string::npos ? next : next + 1;
  }
  return rules;
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
  void add_pairs();
  void judge_all();
  void shrink(Finding& finding);
  void confirm();
  RunFacts run_one(const std::string& scenario, int repetition, const fs::path& keep);
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
  identity["seed"] = options.seed;
  identity["random"] = options.random;
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
    if (!is_kind(options_.only, trial.kind) || !is_of(options_.processes, trial.process)) continue;
    if ((trial.number - 1) % options_.shards + 1 != options_.shard) continue;
    selected_.push_back(trial);
  }
}

int Exploration::list() const {
  for (const Trial& trial : selected_) {
    const size_t rule = trial.scenario.find("  - ");
    std::cout << fmt::format("{:5} {:12} {:4} {}\n", trial.number, trial.kind, trial.represents,
                             trial.text)
              << "      " << trial.scenario.substr(rule + 4);
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
    if (store_->find(trial.scenario) == nullptr)
      jobs.push_back({.number = trial.number, .scenario = trial.scenario});
  Progress progress(selected_.size(), selected_.size() - jobs.size());
  runner_.run(
      jobs,
      [&](const Job& job, const RunFacts& facts) {
        if (facts.trouble.find("No space left") != std::string::npos)
          throw ExploreError(facts.trouble + "\nWhat was found so far is kept in " +
                             options_.folder + "; make room, and go on with --resume");
        store_->add(job.scenario, facts);
        progress.advance(is_finding(judge(facts, *baseline_, options_.limits).verdict));
      },
      [this] { return stops(); });
}

/// A second fault at the points that a first one brings forth: a program's second attempt, and its
/// handling of errors.
void Exploration::add_pairs() {
  std::set<std::string> there;
  for (const Trial& trial : trials_) there.insert(rules_of(trial.scenario).front());
  std::vector<Job> jobs;
  std::map<size_t, Trial> first_of;
  for (const Trial& trial : selected_) {
    const RunFacts* facts = store_->find(trial.scenario);
    if (facts == nullptr) continue;
    const Verdict verdict = judge(*facts, *baseline_, options_.limits).verdict;
    if (verdict != Verdict::kSurvived && verdict != Verdict::kReported) continue;
    jobs.push_back({.number = trial.number,
                    .scenario = trial.scenario,
                    .keep = scratch_.path() / ("first" + std::to_string(trial.number))});
    first_of.emplace(trial.number, trial);
  }
  std::map<size_t, std::vector<Trial>> pairs;
  std::set<std::string> known;
  runner_.run(
      jobs,
      [&](const Job& job, const RunFacts&) {
        const RecordedEvents events = read_events(job.keep);
        for (Trial& second : plan(representatives(fault_points(events)))) {
          const std::string rule = rules_of(second.scenario).front();
          if (!there.contains(rule)) pairs[job.number].push_back(std::move(second));
        }
        fs::remove_all(job.keep);
      },
      [this] { return stops(); });
  const size_t before = trials_.size();
  for (auto& [number, seconds] : pairs) {
    const Trial& first = first_of.at(number);
    for (Trial& second : seconds) {
      const std::string rule = rules_of(second.scenario).front();
      if (!known.insert(rule).second) continue;  // another first fault has brought it forth
      Trial pair = second;
      pair.number = trials_.size() + 1;
      pair.text = first.text + ", and then " + second.text;
      pair.scenario = "# " + pair.text + "\nrules:\n" + rules_of(first.scenario).front() + rule;
      trials_.push_back(std::move(pair));
    }
  }
  summary_.trials = trials_.size();
  for (size_t i = before; i < trials_.size(); ++i) selected_.push_back(trials_[i]);
  run_trials();
}

void Exploration::judge_all() {
  for (const Trial& trial : selected_) {
    const RunFacts* facts = store_->find(trial.scenario);
    if (facts == nullptr) continue;
    results_[trial.number] = {trial, *facts, judge(*facts, *baseline_, options_.limits)};
  }
}

RunFacts Exploration::run_one(const std::string& scenario, int repetition, const fs::path& keep) {
  const std::string key = fmt::format("again {} {}", repetition, scenario);
  const RunFacts* known = store_->find(key);
  if (known != nullptr && (keep.empty() || fs::exists(keep / "scenario.yaml"))) return *known;
  RunFacts result;
  runner_.run(
      {{.number = 0, .scenario = scenario, .keep = keep}},
      [&](const Job&, const RunFacts& facts) {
        result = facts;
        store_->add(key, facts);
      },
      [] { return interrupted.load(); });
  return result;
}

/// Rules that change nothing of where it ends go.
void Exploration::shrink(Finding& finding) {
  std::vector<std::string> rules = rules_of(finding.scenario);
  const auto text_of = [](const std::vector<std::string>& some) {
    std::string text = "rules:\n";
    for (const std::string& rule : some) text += rule;
    return text;
  };
  bool shrunk = false;
  for (size_t i = 0; rules.size() > 1 && i < rules.size() && !interrupted;) {
    std::vector<std::string> fewer = rules;
    fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
    const Judgement judgement = judge(run_one(text_of(fewer), 0, {}), *baseline_, options_.limits);
    if (std::string(name_of(judgement.verdict)) + " " + judgement.place == finding.place) {
      rules = std::move(fewer);
      shrunk = true;
    } else {
      ++i;
    }
  }
  if (shrunk) finding.scenario = text_of(rules);
}

void Exploration::confirm() {
  for (Finding& finding : findings_) {
    if (interrupted) return;
    shrink(finding);
    const fs::path keep = fs::path(options_.folder) / std::to_string(finding.number);
    fs::remove_all(keep);
    for (int i = 1; i <= options_.repetitions && !interrupted; ++i) {
      const Judgement judgement = judge(run_one(finding.scenario, i, i == 1 ? keep : fs::path()),
                                        *baseline_, options_.limits);
      ++finding.repetitions;
      if (std::string(name_of(judgement.verdict)) + " " + judgement.place == finding.place)
        ++finding.confirmed;
    }
    if (!fs::exists(keep)) continue;
    std::ofstream(keep / "report.txt") << finding.sentence << "\n"
                                       << reproduce_line(summary_, finding) << "\n";
  }
}

Json to_json(const Trial& trial) {
  return Json{{"number", trial.number},        {"text", trial.text},
              {"scenario", trial.scenario},    {"kind", trial.kind},
              {"process", trial.process},      {"time_ns", trial.time_ns},
              {"represents", trial.represents}};
}

Trial trial_of(const Json& json) {
  Trial trial;
  json.at("number").get_to(trial.number);
  json.at("text").get_to(trial.text);
  json.at("scenario").get_to(trial.scenario);
  json.at("kind").get_to(trial.kind);
  json.at("process").get_to(trial.process);
  json.at("time_ns").get_to(trial.time_ns);
  json.at("represents").get_to(trial.represents);
  return trial;
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
  for (const Trial& trial : trials_) trials.push_back(to_json(trial));
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
  points_ = fault_points(baseline_runs_.events);
  classes_ = representatives(points_);
  trials_ = plan(classes_);
  if (options_.random != 0) add_mixtures(trials_, options_);
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

int merge(const std::vector<std::string>& folders, const Options& options) {
  prepare_folder(options);
  std::ifstream stream(fs::path(folders.front()) / kPlanFile);
  const Json json = Json::parse(stream, nullptr, false);
  if (json.is_discarded())
    throw ExploreError(folders.front() + " has no plan.json: it is no folder of rocemu explore");
  const Json identity = json.at("identity");
  std::vector<RunFacts> facts;
  for (const Json& one : json.at("baseline")) facts.push_back(RunFacts::from_json(one));
  const Baseline baseline = make_baseline(facts);
  ResultStore store(fs::path(options.folder) / kResultsFile, identity, /*resumes=*/false);
  for (const std::string& folder : folders) {
    if (!fs::exists(fs::path(folder) / kResultsFile))
      throw ExploreError(folder + " has no results.jsonl: it is no folder of rocemu explore");
    store.merge(fs::path(folder) / kResultsFile, identity);
  }
  fs::copy_file(fs::path(folders.front()) / kPlanFile, fs::path(options.folder) / kPlanFile,
                fs::copy_options::overwrite_existing);
  Summary summary{.command = identity.at("command").get<std::vector<std::string>>(),
                  .folder = options.folder,
                  .points = json.at("points"),
                  .classes = json.at("classes"),
                  .trials = json.at("trials").size(),
                  .baseline_ns = baseline.facts.end_ns,
                  .deterministic = json.at("deterministic"),
                  .stopped = {}};
  std::map<size_t, Result> results;
  for (const Json& one : json.at("trials")) {
    const Trial trial = trial_of(one);
    const RunFacts* found = store.find(trial.scenario);
    if (found != nullptr)
      results[trial.number] = {trial, *found, judge(*found, baseline, options.limits)};
  }
  std::vector<Finding> findings = group(results);
  for (Finding& finding : findings) {
    for (int i = 1; i <= options.repetitions; ++i) {
      const RunFacts* again = store.find(fmt::format("again {} {}", i, finding.scenario));
      if (again == nullptr) continue;
      ++finding.repetitions;
      const Judgement judgement = judge(*again, baseline, options.limits);
      if (std::string(name_of(judgement.verdict)) + " " + judgement.place == finding.place)
        ++finding.confirmed;
    }
    for (const std::string& folder : folders) {
      for (size_t number = 1;; ++number) {
        const fs::path from = fs::path(folder) / std::to_string(number);
        if (!fs::exists(from / "scenario.yaml")) break;
        std::ifstream scenario(from / "scenario.yaml");
        const std::string text{std::istreambuf_iterator<char>(scenario), {}};
        if (text != finding.scenario) continue;
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
