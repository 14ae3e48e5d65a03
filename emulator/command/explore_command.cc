// `rocemu explore`: defines the options of the command. The exploration itself is in
// emulator/explore/.
#include "emulator/explore/explore.h"

#include <algorithm>
#include <charconv>
#include <iostream>

#include "emulator/command/base/error.h"
#include "emulator/command/base/number_option.h"
#include "emulator/command/base/subcommand.h"
#include "emulator/command/hangs/hang.h"
#include "emulator/command/nic/fabric_options.h"
#include "emulator/command/programs/executable.h"
#include "emulator/command/run/supervise.h"
#include "emulator/command/sanitizer/sanitized_run.h"
#include "emulator/command/sanitizer/sanitizer_options.h"
#include "emulator/explore/points/fault_table.h"
#include "emulator/options/checked_options.h"
#include "emulator/options/describe.h"
#include "emulator/os/processors.h"
#include "emulator/os/threads/stacks.h"
#include "emulator/scenario/rule_names.h"
#include "emulator/scenario/scenario.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

using explore::Verdict;

/// The exit status if nothing was explored. Scripts must distinguish it from kExitFailure, which
/// means that there are findings.
constexpr int kExitNotExplored = 3;

/// The limits of options. The trials of --random, --schedules and --adversarial, which has a trial
/// for each class, are all kept in memory.
constexpr uint64_t kMaxTrials = 100'000, kMaxAdversarial = 10'000;
constexpr uint64_t kMaxDepth = 2, kMaxRepetitions = 1000, kMaxJobs = 1000;
constexpr double kMaxSlow = 1'000'000;

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> list;
  for (size_t at = 0; at <= text.size();) {
    size_t end = text.find(',', at);
    if (end == std::string::npos) end = text.size();
    if (end > at) list.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return list;
}

void read_shard(const std::string& text, explore::Options& options) {
  const size_t slash = text.find('/');
  const auto read = [&](std::string_view part, size_t& value) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    return error == std::errc() && end == part.data() + part.size();
  };
  const bool right = slash != std::string::npos &&
                     read(std::string_view(text).substr(0, slash), options.shard) &&
                     read(std::string_view(text).substr(slash + 1), options.shards) &&
                     options.shard >= 1 && options.shard <= options.shards;
  if (!right)
    throw UsageError("explore: --shard '" + text + "' is not I/N, such as 1/4, with I from 1 to N");
}

/// Returns the word "verbs:NAME" with the name of the verb as rules have it. Throws UsageError if
/// there is no such verb.
std::string with_known_verb(const std::string& word) {
  const size_t colon = word.find(':');
  if (colon == std::string::npos) return word;
  const std::string given = word.substr(colon + 1);
  const std::string verb = scenario::verb_named(given);
  if (!verb.empty()) return word.substr(0, colon + 1) + verb;
  const std::string_view near = scenario::nearest(given, scenario::verb_names().texts());
  throw UsageError("explore: --only: there is no verb '" + given + "'" +
                   (near.empty() ? "; `rocemu explore --list` shows those of the command"
                                 : "; did you mean '" + std::string(near) + "'?"));
}

void read_only(const std::string& text, explore::Options& options) {
  constexpr std::array<std::string_view, 8> kKinds = {
      "verbs", "work_requests", "completions", "frames", "requests", "cm", "cm_events", "events"};
  for (const std::string& word : words(text)) {
    const std::string given = word.substr(0, word.find(':'));
    const bool known = std::ranges::any_of(
        kKinds, [&](std::string_view kind) { return given == kind || given + "s" == kind; });
    if (!known) {
      const std::string_view near = nearest(given, kKinds);
      throw UsageError("explore: --only: there is no kind '" + word + "'" +
                       (near.empty() ? "." : "; did you mean " + std::string(near) + "?") +
                       " The kinds are verbs, work_requests, completions, frames, requests, cm, "
                       "cm_events, events");
    }
    options.only.push_back(given.starts_with("verb") ? with_known_verb(word) : word);
  }
}

void read_fail_on(const std::string& text, explore::Options& options) {
  options.fails_on.clear();
  for (const std::string& word : words(text)) {
    if (word == "none") continue;
    const std::optional<Verdict> verdict = explore::verdict_named(word);
    if (!verdict)
      throw UsageError("explore: --fail-on: there is no verdict '" + word +
                       "'; use hang, crash, wrong, misuse, leak, slow or none");
    options.fails_on.insert(*verdict);
  }
}

explore::Options read_options(const po::variables_map& values, const Arguments& command) {
  explore::Options options;
  const auto text = [&](const char* name) {
    return values.count(name) != 0 ? std::optional(values[name].as<std::string>()) : std::nullopt;
  };
  const auto number = [&](const char* name, uint64_t most, uint64_t otherwise) {
    return number_option("explore", values, name, {1, most}).value_or(otherwise);
  };
  options.runs.rocemu = [](const Arguments& arguments, bool alone) {
    if (alone) expect_no_external_programs();
    keep_findings_quiet();
    return dispatch(arguments);
  };
  options.runs.command = command;
  options.runs.jobs =
      number("jobs", kMaxJobs, std::clamp<uint64_t>(allowed_processors().size(), 1, kMaxJobs));
  options.runs.own_network = !values["shared-network"].as<bool>();
  options.runs.lockstep = !values["real-clock"].as<bool>();
  options.runs.one_processor = options.runs.lockstep && !values["all-processors"].as<bool>();
  options.limits.status_tells_signal = !options.runs.lockstep;
  if (const auto time = text("run-timeout"))
    options.runs.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(
        parse_time("explore", "--run-timeout", *time));
  if (values.count("compare") != 0)
    options.runs.compared_files = values["compare"].as<std::vector<std::string>>();
  options.runs.oracle = text("oracle").value_or("");
  options.folder = text("output").value_or(options.folder);
  while (options.folder.size() > 1 && options.folder.ends_with('/')) options.folder.pop_back();
  if (options.folder.empty()) throw UsageError("explore: --output needs the name of a directory");
  options.resume = values["resume"].as<bool>();
  options.force = values["force"].as<bool>();
  options.runs.cores = values["cores"].as<bool>();
  if (options.runs.cores && !is_installed(StackTool::kGdb))
    throw UsageError("explore: --cores needs gdb, which is not installed");
  options.lists = values["list"].as<bool>();
  options.json = values["json"].as<bool>();
  if (const auto only = text("only")) read_only(*only, options);
  if (const auto processes = text("process")) options.processes = words(*processes);
  if (const auto budget = text("budget"))
    options.budget = parse_time("explore", "--budget", *budget);
  if (const auto verdicts = text("fail-on")) read_fail_on(*verdicts, options);
  options.known = text("known").value_or("");
  if (const auto slow = text("slow"))
    options.limits.slow = read_decimal("explore", "--slow", *slow, 1, kMaxSlow);
  options.random = number("random", kMaxTrials, 0);
  options.schedules = number("schedules", kMaxTrials, 0);
  if (options.schedules != 0 && !options.runs.lockstep)
    throw UsageError("explore: --schedules needs lockstep; leave out --real-clock");
  options.adversarial = number("adversarial", kMaxAdversarial, 0);
  options.adversarial_classes = options::adversarial_class_names();
  options.depth = static_cast<int>(number("depth", kMaxDepth, 1));
  options.repetitions = static_cast<int>(number("repeat", kMaxRepetitions, 2));
  if (const auto shard = text("shard")) read_shard(*shard, options);
  return options;
}

/// With --sanitize, makes each run check for misuse of verbs, as `rocemu run` does with the same
/// options.
void add_sanitizer(const po::variables_map& values, explore::RunnerOptions& runs) {
  if (!read_sanitizer_options("explore", values)) return;
  runs.sanitizes = true;
  const std::string rules = values["sanitize"].as<std::string>();
  runs.fabric.push_back(rules.empty() ? "--sanitize" : "--sanitize=" + rules);
  if (values.count("sanitize-suppressions") == 0) return;
  runs.fabric.insert(runs.fabric.end(), {"--sanitize-suppressions",
                                         values["sanitize-suppressions"].as<std::string>()});
}

explore::Options options_of(const Arguments& own, const Arguments& command) {
  const po::variables_map values =
      parse_options("explore", own, options::options_of(options::Command::kExplore));
  explore::Options options = read_options(values, command);
  if (options.runs.lockstep) require_own_clock("explore");
  options.runs.fabric = daemon_arguments(options::Command::kExplore, values);
  add_sanitizer(values, options.runs);
  if (values.count("seed") != 0) {
    const std::string seed = values["seed"].as<std::string>();
    std::from_chars(seed.data(), seed.data() + seed.size(), options.seed);
  }
  return options;
}

/// Does what each run would otherwise do again, since runs and their NICs are forks of this
/// process: compiles the regular expressions of the YAML parser.
void prepare_for_runs() {
  scenario::parse_rules(
      "rules: [{on: verb, verb: reg_mr, nth_total: 1, total: 1, do: {errno: ENOMEM}}]");
}

int merge_command(const Arguments& arguments) {
  Arguments folders, own;
  for (auto next = arguments.begin() + 1; next != arguments.end(); ++next) {
    if (!next->starts_with("-")) {
      folders.push_back(*next);
      continue;
    }
    own.push_back(*next);
    const bool takes_value = (*next == "--output" || *next == "--known" || *next == "--fail-on") &&
                             next + 1 != arguments.end();
    if (takes_value) own.push_back(*++next);
  }
  if (folders.empty())
    throw UsageError("explore merge: give the folders of the shards: rocemu explore merge DIR...");
  return explore::merge(folders, options_of(own, {}));
}

std::string help_of_explore(bool all) {
  return R"(usage: rocemu explore [options] -- COMMAND [ARGUMENT...]
       rocemu explore merge [--output DIR] DIR...

Finds the faults that break COMMAND. Runs it a few times without a fault, in lockstep, and
records it (the baseline). Each call, work request, completion, frame and connection manager
message or event in the recording is a point at which something can fail. Then runs COMMAND
once for each realistic fault at each point, and gives every run a verdict:

  SURVIVED  all programs exit as in the baseline, with the same output
  REPORTED  a program exits with a nonzero status that it does not have in the baseline
  HANG      all threads wait forever, or the run does not end
  CRASH     a signal kills a program, or a compiler's sanitizer or Valgrind reports an error
  WRONG     the run succeeds, but its output or a file of --compare differs, or --oracle
            fails; or the run fails although no fault was caused (--schedules,
            --adversarial)
  MISUSE    a program uses verbs wrongly (with --sanitize)
  LEAK      the run succeeds, but leaves objects that the baseline destroys
  SLOW      the run succeeds, but takes far longer in virtual time

Faults that fail in the same place are one finding. Each finding has a folder with its
scenario, recording, frames and output, and a command that repeats it. The reports are
DIR/report.txt, .json, .xml (JUnit), .sarif and .html.

)" + options::help_of(options::Command::kExplore, all) +
         R"(
COMMAND must succeed without faults, and must end. To explore two programs, start both:
  rocemu explore -- sh -c 'server & client; status=$?; wait $! && exit $status'
In lockstep the exit statuses of all programs count, even those that the shell ignores.

Exit status: 0 if nothing is found that --fail-on names; 1 for a new finding; 2 for wrong
usage; 3 if COMMAND cannot be explored (standard error says why); 126 if COMMAND cannot be
executed; 127 if there is no such COMMAND; 130 after Ctrl-C, with a report of the findings so
far.

Examples:
  rocemu explore -- ./my_test
  rocemu explore --list --only verbs --process server -- ./my_test
  rocemu explore --budget 10m --known known.json -- ./my_test
  rocemu explore --shard 1/4 --output part1 -- ./my_test
  rocemu explore merge part1 part2 part3 part4
)";
}

}  // namespace

std::string explore_help() {
  return help_of_explore(false);
}

std::string explore_help_all() {
  return help_of_explore(true);
}

int explore(const Arguments& arguments) {
  if (!arguments.empty() && arguments[0] == "merge") {
    try {
      return merge_command(arguments);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw Error(kExitNotExplored, std::string("explore: ") + error.what());
    }
  }
  const auto separator = std::ranges::find(arguments, "--");
  const Arguments own(arguments.begin(), separator);
  if (std::ranges::find(own, "--table") != own.end()) {
    std::cout << explore::table_as_markdown();
    return 0;
  }
  if (separator == arguments.end() || separator + 1 == arguments.end() || (separator + 1)->empty())
    throw UsageError("explore: no command given; it follows '--': rocemu explore -- ./my_test");
  const Arguments command(separator + 1, arguments.end());
  find_command(command[0]);
  const explore::Options options = options_of(own, command);
  prepare_for_runs();
  try {
    return explore::explore(options);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(kExitNotExplored, std::string("explore: ") + error.what());
  }
}

}  // namespace rocemu::command
