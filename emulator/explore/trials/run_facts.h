// The facts about one finished run of the user's command. They are stored as one line of JSON, so
// that an interrupted exploration can continue.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "emulator/explore/points/recorded_events.h"
#include "emulator/explore/trials/adversarial_choice.h"
#include "emulator/explore/trials/misuse.h"
#include "emulator/explore/trials/schedule_stop.h"

namespace rocemu::explore {

struct RunFacts {
  int status = 0;  // of `rocemu run`
  bool deadlock = false;
  bool timeout = false;    // still running after its time limit
  bool flood = false;      // wrote more than is allowed
  bool runaway = false;    // did far more than the baseline
  bool patiently = false;  // Job::patiently
  int64_t end_ns = 0;      // virtual time
  uint64_t events = 0;
  bool fired = false;
  bool without_fault = false;        // tried without a fault: another order of threads, for example
  std::string output, errors;        // of the command; errors without rocemu's messages
  std::vector<std::string> waits;    // of a run that hung: "server#1 waits in ibv_get_cq_event ..."
  std::vector<std::string> crashes;  // "server#1 received SIGSEGV"
  std::set<std::string> failed;      // processes that ended with a status other than 0
  /// The exit statuses other than 0, by the name of the process. Several programs that do not use
  /// RDMA may have the same name.
  std::map<std::string, std::set<int>> statuses;
  std::map<std::string, std::string> last_calls;  // by process
  std::map<std::string, std::string> late_calls;  // all of the last calls, by process
  /// The functions in which the threads of a process hung or crashed, by the name of the process:
  /// "waits < main".
  std::map<std::string, std::vector<std::string>> stacks;
  std::map<std::string, int64_t> left;       // objects_left()
  std::map<std::string, std::string> files;  // the compared files
  std::vector<Misuse> misuses;               // with --sanitize
  std::vector<ScheduleStop> stops;           // with Job::tells_variation
  AdversarialChoices choices;                // the same
  std::string trouble;  // rocemu's messages that are not about the command, such as a full disk
  int oracle = 0;       // exit status of the user's oracle
  std::chrono::nanoseconds took{};  // in real time; 0 if this was read from a file

  /// Returns true if the run counts as hung only because it exceeded the limit of real time, which
  /// may have been too short on a busy machine.
  bool is_doubtful() const;

  Json to_json() const;
  static RunFacts from_json(const Json& json);
};

inline constexpr char kStacksFile[] = "stacks.txt";

/// Reads the facts about a run from the directory `dir`, which contains the run's recording and the
/// files `stdout` and `stderr`.
RunFacts read_facts(const std::filesystem::path& dir, int status, const std::string& rule);

}  // namespace rocemu::explore
