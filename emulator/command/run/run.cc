// `rocemu run`: runs a program with a NIC, and removes every trace of the NIC afterwards.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "emulator/abi/runtime_dir.h"
#include "emulator/command/base/error.h"
#include "emulator/command/base/number_option.h"
#include "emulator/command/base/subcommand.h"
#include "emulator/command/daemons/control_client.h"
#include "emulator/command/daemons/daemon_launch.h"
#include "emulator/command/daemons/default_runtime_dir.h"
#include "emulator/command/daemons/process_exit.h"
#include "emulator/command/determinism/check_determinism.h"
#include "emulator/command/faults/rule_reports.h"
#include "emulator/command/hangs/hang.h"
#include "emulator/command/hangs/stack_files.h"
#include "emulator/command/nic/fabric_options.h"
#include "emulator/command/programs/executable.h"
#include "emulator/command/programs/installation.h"
#include "emulator/command/programs/program_environment.h"
#include "emulator/command/recordings/golden_run.h"
#include "emulator/command/recordings/inner_recordings.h"
#include "emulator/command/recordings/kept_run.h"
#include "emulator/command/recordings/recorded_capture.h"
#include "emulator/command/recordings/recording_files.h"
#include "emulator/command/run/all_profiles.h"
#include "emulator/command/run/host_of_run.h"
#include "emulator/command/run/nothing_posted.h"
#include "emulator/command/run/one_processor.h"
#include "emulator/command/run/supervise.h"
#include "emulator/command/sanitizer/sanitized_run.h"
#include "emulator/command/sanitizer/shared_sanitizer.h"
#include "emulator/options/checked_options.h"
#include "emulator/options/describe.h"
#include "emulator/os/programs/elf_file.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

/// The time that other programs get to finish after the command has ended, such as a server whose
/// last client has ended.
constexpr std::chrono::milliseconds kFinishing{200};

/// Removes the command from the arguments and returns it. The command must follow "--", so that its
/// options are never mistaken for those of `rocemu run`.
Arguments take_command(Arguments& arguments) {
  const auto separator = std::ranges::find(arguments, "--");
  Arguments command;
  if (separator != arguments.end()) command.assign(separator + 1, arguments.end());
  arguments.erase(separator, arguments.end());
  return command;
}

/// A NIC that other runs also use.
struct SharedNic {
  std::string dir;
  std::string sanitizer;  // the directory of its findings; empty if it does not check for misuse
};

/// Returns the shared NIC, if one is up.
std::optional<SharedNic> running_shared_daemon() {
  if (!distrust_of_base(base_dir()).empty()) return std::nullopt;
  std::optional<ControlClient> client = ControlClient::connect(shared_dir());
  if (!client) {
    // Only a NIC that did not end normally leaves its directory behind.
    if (std::filesystem::exists(shared_dir() + "/" + abi::kControlSocket))
      std::cerr << "rocemu: the shared NIC has died (its log: " + shared_dir() +
                       ".log); this run has a private NIC, which programs of other runs "
                       "cannot reach. Start the shared one again: rocemu up\n";
    return std::nullopt;
  }
  client->require_same_version();
  return SharedNic{client->dir(), sanitizer_directory_of(*client)};
}

/// Returns the golden run of --expect, which is replaced with --update; null without --expect.
std::unique_ptr<GoldenRun> make_golden_run(const po::variables_map& values) {
  const auto absolute = [&](const char* option) -> std::filesystem::path {
    if (values.count(option) == 0) return {};
    const std::string dir = values[option].as<std::string>();
    if (dir.empty())
      throw UsageError("run: --" + std::string(option) + " needs the name of a directory");
    return std::filesystem::absolute(dir);
  };
  const bool update = values["update"].as<bool>();
  if (values.count("expect") == 0) {
    if (update) throw UsageError("run: --update needs --expect DIR");
    if (values.count("actual") != 0) throw UsageError("run: --actual needs --expect DIR");
    return nullptr;
  }
  if (!values["lockstep"].as<bool>())
    throw UsageError("run: --expect needs --lockstep; without it, every run differs");
  if (update && values.count("actual") != 0)
    throw UsageError(
        "run: --update replaces the expected run, so there is no difference to keep; leave out "
        "--actual");
  return std::make_unique<GoldenRun>(
      GoldenRun::Directories{absolute("expect"), absolute("record"), absolute("actual")}, update);
}

/// Reports each rule that never acted. Returns whether there is one.
bool has_idle_rules(const std::string& dir, bool warns_of_none) {
  std::optional<ControlClient> client = ControlClient::connect(dir);
  if (!client) return false;
  const Json reply = client->request("rules");
  if (warns_of_none && reply.at("rules").empty())
    std::cerr << "rocemu: warning: --strict checks nothing, since the scenario has no rules\n";
  const std::vector<std::string> lines = idle_rules(reply);
  for (const std::string& line : lines) std::cerr << "rocemu: " + line + "\n";
  return !lines.empty();
}

bool has_rule_acted(ControlClient& client) {
  const Json rules = client.request("rules").at("rules");
  return std::ranges::any_of(rules,
                             [](const Json& rule) { return rule.at("fired").get<uint64_t>() > 0; });
}

/// Throws Failure if /proc belongs to another PID namespace. With turns and on the virtual clock,
/// rocemu inspects programs in /proc by their PIDs.
void require_own_proc() {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self", error).string();
  if (self != std::to_string(getpid()))
    throw Failure(
        "run: /proc is not that of this PID namespace, so rocemu cannot inspect the programs; "
        "mount it: unshare --pid --fork --mount-proc rocemu run ...");
}

/// Returns the directory that --call-sites names; empty without that option.
std::string make_call_sites_dir(const po::variables_map& values) {
  if (values.count("call-sites") == 0) return "";
  const std::string given = values["call-sites"].as<std::string>();
  if (given.empty()) throw UsageError("run: --call-sites needs the name of a directory");
  std::string dir = std::filesystem::absolute(given).string();
  make_directory(dir);
  if (!std::filesystem::is_empty(dir))
    throw Failure("run: --call-sites: " + given + " already has files; give a new directory");
  return dir;
}

/// Reports that the command takes no turns. For the programs that the command starts, the daemon
/// reports this (daemon/run/unseen_programs.h), but the command itself may have ended before the
/// daemon can inspect it.
void report_if_unseen(const std::string& command) {
  const std::string path = find_executable(command);
  const std::string name = std::filesystem::path(path).filename().string();
  const std::string why = why_out_of_reach(path, name);
  if (!why.empty())
    std::cerr << "rocemu: " + name + " " + why +
                     ": rocemu cannot schedule this program, which sees real time, so its behavior "
                     "depends on chance\n";
}

/// Ends the programs that the command has left in the background, because their NIC has ended, and
/// reaps all.
void end_left_programs(RunPrograms& programs, std::chrono::milliseconds patience) {
  if (!programs.wait_until_gone(patience)) {
    std::cerr << "rocemu: the command and its NIC have ended; these programs, which it left "
                 "in the background, are terminated:\n" +
                     list_programs(programs.list());
    programs.end();
  }
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

/// One run of the command: the options of the run, and its steps from checking the options to the
/// exit status.
class Run {
 public:
  /// Throws UsageError for wrong options, and Failure for a scenario that cannot be read.
  Run(const po::variables_map& values, Arguments command)
      : values_(values),
        command_(std::move(command)),
        start_{.arguments = daemon_arguments(options::Command::kRun, values)},
        lockstep_(is_set("lockstep")),
        stops_unrecorded_(text("record-policy") == "stop") {
    if (command_.empty() || command_[0].empty())
      throw UsageError("run: no command given; it follows '--': rocemu run -- ibv_devices");
    find_command(command_[0]);  // throws before a NIC is started in vain
    if (has("host")) host_ = parse_host(text("host"));
    start_.scenario = read_scenarios(values);
  }

  /// Executes the run, and returns its exit status.
  int execute() {
    if (joins_outer_run()) return execute_in_outer_run();
    set_limits();
    set_clock();
    prepare_recordings();
    prepare_reports();
    programs_.emplace();
    join_or_start_nic();
    const Outcome outcome = supervise_command();
    status_ = outcome.status;
    report_idle_rules();
    report_use();
    stop_nic();
    // A test reads the reports itself, so they do not change the exit status of this process.
    if (sanitized_ != nullptr && sanitized_->finish() && !test_) fail();
    check_recordings(outcome.report);
    return status_;
  }

 private:
  /// Returns whether this command joins an outer run: inside a run, `rocemu run --host N --
  /// COMMAND` executes COMMAND on that host.
  bool joins_outer_run() const {
    return host_ && start_.arguments.empty() && !is_set("private") && !outer_nic().empty();
  }
  int execute_in_outer_run() {
    choose_host(outer_nic(), *host_);
    std::vector<char*> words;
    for (std::string& word : command_) words.push_back(word.data());
    words.push_back(nullptr);
    execvp(words[0], words.data());
    fail_with_errno("cannot execute " + command_[0], errno);
  }

  bool has(const char* option) const { return values_.count(option) != 0; }
  bool is_set(const char* option) const { return values_[option].as<bool>(); }
  std::string text(const char* option) const {
    return has(option) ? values_[option].as<std::string>() : "";
  }
  void fail() {
    if (status_ == 0) status_ = kExitFailure;
  }
  void give_daemon(std::initializer_list<std::string> arguments) {
    start_.arguments.insert(start_.arguments.end(), arguments);
  }

  void set_limits() {
    if (has("timeout")) timeout_ = parse_time("run", "--timeout", text("timeout"));
    if (has("poll-patience"))
      poll_patience_ = parse_time("run", "--poll-patience", text("poll-patience"));
    if (has("for-test")) test_.emplace(text("for-test"));
  }

  void set_clock() {
    if (is_set("report-failures") && !lockstep_)
      throw UsageError("run: --report-failures needs --lockstep");
    if (has("processor") && !lockstep_) throw UsageError("run: --processor needs --lockstep");
    if (lockstep_) {
      require_own_proc();
      give_daemon({"--report-stuck"});
      report_if_unseen(command_[0]);
    }
    if (has("processor")) {
      stay_on_processor(
          static_cast<int>(number_option("run", values_, "processor", {0, INT32_MAX}).value()));
      // The run has only one processor, so there is no other processor on which the NIC could spin.
      if (!is_set("no-spin")) give_daemon({"--no-spin"});
    }
  }

  void prepare_recordings() {
    golden_ = make_golden_run(values_);
    if (golden_ != nullptr && !has("record")) give_daemon({"--record", golden_->record_dir()});
    outer_recording_ = record_for_outer_run(values_, start_.arguments);
    kept_ = KeptRun::make(values_, golden_.get());
    if (kept_ && kept_->is_recorded_there()) give_daemon({"--record", kept_->dir()});
  }

  void prepare_reports() {
    stacks_ = make_stack_files(values_);
    call_sites_ = make_call_sites_dir(values_);
    sanitized_ = SanitizedRun::make(values_);
    if (sanitized_ == nullptr) return;
    sanitizer_dir_ = sanitized_->directory();
    give_daemon({"--sanitizer", sanitizer_dir_});
  }

  void join_or_start_nic() {
    if (!is_set("private") && !is_set("strict") && start_.arguments.empty()) {
      if (const auto shared = running_shared_daemon()) {
        dir_ = shared->dir;
        sanitizer_dir_ = shared->sanitizer;
        return;
      }
    }
    // Until the daemon is ready, a signal ends this process at once, and the daemon then notices
    // that this process has ended.
    const std::optional<capture::CaptureFile> capture = open_capture(values_);
    if (capture) {
      capture_descriptor_ = capture->descriptor;
      start_.capture_fd = capture->fd.get();
    }
    if ((timeout_ || test_) && !lockstep_) give_daemon({"--report-stuck"});
    daemon_.emplace(PrivateDaemon::start(start_));
    dir_ = daemon_->dir();
  }

  Outcome supervise_command() {
    set_program_environment(dir_, {.call_sites = call_sites_, .sanitizer = sanitizer_dir_});
    if (host_) choose_host(dir_, *host_);
    return supervise(command_, *programs_,
                     {.daemon = daemon_ ? &*daemon_ : nullptr,
                      .dir = dir_,
                      .capture_descriptor = capture_descriptor_,
                      .ends_with_daemon = stops_unrecorded_,
                      .lockstep = lockstep_,
                      .mounts_sysfs = is_set("mount-sysfs"),
                      .tells_exits = is_set("report-failures"),
                      .timeout = timeout_,
                      .poll_patience = poll_patience_,
                      .recording = recording_dir(),
                      .stacks = stacks_,
                      .test = test_ ? &*test_ : nullptr});
  }

  void report_idle_rules() {
    const bool strict = is_set("strict");
    if (!daemon_ || daemon_->is_gone() || !(strict || has("scenario"))) return;
    if (has_idle_rules(dir_, strict && has("scenario")) && strict) fail();
  }

  /// Reports two problems that the success of a run may hide: the NIC's profile completed requests
  /// with an error, or the program posted nothing.
  void report_use() {
    if (!daemon_ || daemon_->is_gone()) return;
    std::optional<ControlClient> client = ControlClient::connect(dir_);
    if (!client) return;
    const NicUse use = use_of_nic(client->request("show"));
    for (const std::string& line : use.late_failures) std::cerr << "rocemu: " + line + "\n";
    // If the command failed, the user notices that without this report. If a rule acted, the fault
    // may be the reason why nothing was posted.
    if (use.nothing_posted.empty() || status_ != 0 || has_rule_acted(*client)) return;
    std::cerr << "rocemu: " + use.nothing_posted + "\n";
    if (is_set("strict")) fail();
  }

  void stop_nic() {
    if (!daemon_) return;
    const bool nic_was_gone = daemon_->is_gone();
    // In lockstep, the NIC itself waits until the programs have finished.
    if (!lockstep_) programs_->wait_until_gone(kFinishing);
    const std::string trouble = daemon_->stop();
    end_left_programs(*programs_, lockstep_ ? kFinishing : std::chrono::milliseconds(0));
    if (!trouble.empty()) std::cerr << "rocemu: " + trouble + "\n";
    // If the NIC crashed, the success of a program or a test does not count.
    if (nic_was_gone || !trouble.empty()) fail();
  }

  void check_recordings(const std::string& report) {
    const std::string recording =
        outer_recording_.empty() ? recording_to_finish() : outer_recording_;
    if (daemon_ && !recording.empty() && !finish_recording(recording, limits_of_recording()) &&
        stops_unrecorded_) {
      fail();
    }
    if (kept_) kept_->copy();
    if (golden_ != nullptr && !golden_->check()) fail();
    if (kept_) kept_->finish(status_, report, limits_of_recording());
  }

  /// Returns the directory in which the run is recorded; empty if it is not recorded.
  std::string recording_dir() const {
    if (golden_ != nullptr) return golden_->record_dir().string();
    if (has("record")) return text("record");
    return kept_ ? kept_->dir() : "";
  }

  /// Returns the directory of the recording that must get a capture after the run; empty if there
  /// is none. A recording that is only compared with that of --expect needs no capture.
  std::string recording_to_finish() const {
    if (is_set("no-trace")) return "";
    if (has("record")) return text("record");
    return is_set("update") ? text("expect") : "";
  }

  /// Returns the limits for the capture in the recording. --snap-length applies to this capture,
  /// too.
  capture::CaptureLimits limits_of_recording() const {
    return {.snap_length = options::check_options(values_).snap_length};
  }

  const po::variables_map& values_;
  Arguments command_;
  DaemonStart start_;
  const bool lockstep_;
  const bool stops_unrecorded_;  // whether the run ends when recording fails
  std::optional<uint32_t> host_;
  std::optional<std::chrono::nanoseconds> timeout_;
  std::chrono::nanoseconds poll_patience_ = std::chrono::seconds(5);
  std::optional<WatchedTest> test_;
  std::unique_ptr<GoldenRun> golden_;
  std::string outer_recording_;  // where the outer run expects a recording; may be empty
  std::optional<KeptRun> kept_;
  std::optional<StackFiles> stacks_;
  std::string call_sites_;
  std::unique_ptr<SanitizedRun> sanitized_;
  std::string sanitizer_dir_;  // the directory of the NIC's findings; empty for none
  int capture_descriptor_ = -1;
  std::optional<PrivateDaemon> daemon_;  // none: the NIC is shared
  std::string dir_;                      // the NIC's
  std::optional<RunPrograms> programs_;
  int status_ = 0;
};

/// Throws UsageError if no "--" precedes the command, as in `rocemu run --lockstep ls -l`. The
/// message suggests the command line that the user probably intended.
void require_separator(const Arguments& arguments) {
  if (std::ranges::find(arguments, "--") != arguments.end()) return;
  const std::string word = word_of(arguments, options::options_of(options::Command::kRun));
  if (word.empty()) return;
  std::string meant = "rocemu run";
  for (auto at = arguments.begin(); *at != word; ++at) meant += ' ' + *at;
  throw UsageError("run: the command follows '--': " + meant + " -- " + word);
}

}  // namespace

int run(const Arguments& arguments) {
  require_separator(arguments);
  Arguments own = arguments;
  const Arguments command = take_command(own);
  po::variables_map values =
      parse_options("run", own, options::options_in(own, options::Command::kRun));
  options::add_defaults(options::Command::kRun, values);
  const bool has_all_profiles =
      values.count("profile") != 0 && values["profile"].as<std::string>() == "all";
  if (has_all_profiles) {
    if (command.empty()) throw UsageError("run: no command given; it follows '--'");
    find_command(command[0]);  // throws once, and not in each of 13 runs
    return run_with_all_profiles(values, own, command);
  }
  Run one(values, command);
  if (values.count("check-determinism") != 0) return check_determinism(values, own, command);
  return one.execute();
}

}  // namespace rocemu::command
