// Runs the user's command many times, each time in a separate `rocemu run`. Several runs can be
// made at the same time.
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
  /// Executes the rocemu command that these arguments form, and returns its exit status. It is
  /// called in a forked child of this process, because loading the program again would take a tenth
  /// of a run's time. If `alone` is true, the child has a separate network namespace, in which no
  /// outside program can reach the run's programs.
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
  /// The existing directory in which runs write their files.
  std::filesystem::path scratch;
};

inline constexpr char kCallSitesFolder[] = "call-sites";

struct Job {
  size_t number = 0;  // the caller's
  std::string scenario;
  Variation variation = {};
  /// If true, RunFacts also contains the stops of threads or the adversary's choices in the run.
  bool tells_variation = false;
  /// If true, the run has a much longer limit of real time. It confirms an earlier run that the
  /// usual limit ended.
  bool patiently = false;
  /// If true, the run's programs report their call sites in the folder kCallSitesFolder of `keep`.
  bool tells_call_sites = false;
  /// The tool that reads stacks. It is used if it is installed.
  StackTool stacks_by = StackTool::kEuStackNames;
  /// The directory in which the run's recording, outputs and scenario are kept; empty if they are
  /// not kept.
  std::filesystem::path keep = {};
};

class Runner {
 public:
  explicit Runner(RunnerOptions options);
  ~Runner();  // ends the runs in progress
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Runs all jobs. Calls `on_end` for each job when it ends. Calls `stops` often; if it returns
  /// true, ends the runs in progress and returns early.
  void run(const std::vector<Job>& jobs,
           const std::function<void(const Job&, const RunFacts&)>& on_end,
           const std::function<bool()>& stops);

  /// Executes a rocemu command on the files of a run. Returns true if the command succeeded within
  /// the time limit, and before `stops` returned true.
  bool call(const std::vector<std::string>& arguments, const std::function<bool()>& stops) const;

  bool keeps_on_one_processor() const { return !processors_.empty(); }
  void use_all_processors() { processors_.clear(); }

  /// Sets the sizes of a recording's events.jsonl and of its journal above which a run counts as
  /// endless.
  void set_most_recorded(uintmax_t events, uintmax_t journal) {
    most_events_ = events;
    most_journal_ = journal;
  }

  /// Returns the reason why runs share the machine's network and are made one at a time. Empty if
  /// each run has a separate network.
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
