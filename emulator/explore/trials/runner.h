// Runs the user's command many times, each time with a separate `rocemu run`, and several at once.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "emulator/explore/trials/run_facts.h"
#include "emulator/explore/trials/variation.h"
#include "emulator/os/threads/stacks.h"

namespace rocemu::explore {

struct RunnerOptions {
  /// Does the work of the rocemu command with these arguments, and returns its exit status. A run
  /// is a child of this process, because loading the program again would take a tenth of the run's
  /// time. If `alone` is true, the process has a separate network namespace, in which no outside
  /// program reaches the run's programs.
  std::function<int(const std::vector<std::string>& arguments, bool alone)> rocemu;
  std::vector<std::string> command;
  std::vector<std::string> fabric;  // options for `rocemu run`
  bool lockstep = true;
  bool one_processor = true;  // each run uses only one; only in lockstep
  size_t jobs = 1;
  std::chrono::milliseconds timeout{20'000};  // of one run, in real time
  bool own_network = true;                    // each run in a network namespace, if possible
  std::vector<std::string> compared_files;
  std::string oracle;      // a shell command; empty for none
  bool sanitizes = false;  // `fabric` has --sanitize: each run writes its reports for RunFacts
  bool cores = false;      // of runs that hang or crash and whose files are kept
  /// The directory for the files of runs. It must exist.
  std::filesystem::path scratch;
};

inline constexpr char kCallSitesFolder[] = "call-sites";

struct Job {
  size_t number = 0;  // the caller's
  std::string scenario;
  Variation variation = {};
  /// If true, RunFacts has the stops or choices of the run's variation.
  bool tells_variation = false;
  /// If true, the run has a much longer limit of real time, to confirm a run that the usual limit
  /// ended.
  bool patiently = false;
  /// If true, the run's programs report the sites of their calls in the folder kCallSitesFolder of
  /// `keep`.
  bool tells_call_sites = false;
  /// The tool that reads the stacks, if it is installed.
  StackTool stacks_by = StackTool::kEuStackNames;
  /// The directory in which to keep the run's recording, outputs and scenario; empty: none.
  std::filesystem::path keep = {};
};

class Runner {
 public:
  explicit Runner(RunnerOptions options);
  ~Runner();  // ends the runs in progress
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Runs all jobs, and calls `on_end` for each, in the order in which they end. Often calls
  /// `stops`; if that returns true, ends the runs in progress and returns early.
  void run(const std::vector<Job>& jobs,
           const std::function<void(const Job&, const RunFacts&)>& on_end,
           const std::function<bool()>& stops);

  /// Runs a rocemu command on the files of a run. Returns whether it succeeded in bounded time and
  /// before `stops` stopped it.
  bool call(const std::vector<std::string>& arguments, const std::function<bool()>& stops) const;

  bool keeps_on_one_processor() const { return !processors_.empty(); }
  void use_all_processors() { processors_.clear(); }

  /// Sets the sizes of events.jsonl and of the journal above which a run counts as endless.
  void set_most_recorded(uintmax_t events, uintmax_t journal) {
    most_events_ = events;
    most_journal_ = journal;
  }

  /// Returns the reason why runs share the machine's network and are made one at a time; empty if
  /// they do not.
  const std::string& obstacle() const { return obstacle_; }
  size_t jobs() const { return options_.jobs; }

 private:
  struct Running {
    Job job;
    std::filesystem::path dir;
    std::chrono::steady_clock::time_point since;
    std::optional<int> processor;  // the processor that it uses
    bool flood = false, runaway = false;
  };

  std::chrono::milliseconds time_for(const Job& job) const;
  std::optional<int> next_processor() const;
  std::vector<std::string> arguments_for(const Job& job, const std::filesystem::path& dir,
                                         std::optional<int> processor) const;
  void start(const Job& job);
  void finish(const Running& running, int status,
              const std::function<void(const Job&, const RunFacts&)>& on_end);
  void look_after();
  void end_strays() const;
  void end_all();

  RunnerOptions options_;
  std::vector<int> processors_;  // for runs that use only one; empty if they use all
  std::map<pid_t, Running> running_;
  std::string obstacle_;
  uintmax_t most_events_ = UINTMAX_MAX, most_journal_ = UINTMAX_MAX;
  size_t started_ = 0;
};

}  // namespace rocemu::explore
