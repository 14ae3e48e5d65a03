// `rocemu run`: a program, the NIC it sees, and nothing left of the NIC afterwards.
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>

#include "emulator/abi/runtime_dir.h"
#include "emulator/command/daemons/control_client.h"
#include "emulator/command/daemons/daemon_launch.h"
#include "emulator/command/daemons/default_runtime_dir.h"
#include "emulator/command/daemons/process_exit.h"
#include "emulator/command/determinism/check_determinism.h"
#include "emulator/command/doctor/executable.h"
#include "emulator/command/doctor/installation.h"
#include "emulator/command/error.h"
#include "emulator/command/fabric_options.h"
#include "emulator/command/hang.h"
#include "emulator/command/one_processor.h"
#include "emulator/command/program_environment.h"
#include "emulator/command/recordings/golden_run.h"
#include "emulator/command/recordings/inner_recordings.h"
#include "emulator/command/recordings/recorded_capture.h"
#include "emulator/command/recordings/recording_files.h"
#include "emulator/command/rule_reports.h"
#include "emulator/command/subcommand.h"
#include "emulator/command/supervise.h"
#include "emulator/journal/recording.h"
#include "emulator/options/checked_options.h"
#include "emulator/options/describe.h"
#include "emulator/os/elf_file.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

constexpr char kReportFile[] = "/report.txt";
/// The time that programs have to finish when the command ends, such as a server whose last client
/// has ended.
constexpr std::chrono::milliseconds kFinishing{200};

/// The command stands behind "--", so that its options can never be taken for ours.
Arguments take_command(Arguments& arguments) {
  const auto separator = std::ranges::find(arguments, "--");
  Arguments command;
  if (separator != arguments.end()) command.assign(separator + 1, arguments.end());
  arguments.erase(separator, arguments.end());
  return command;
}

/// The directory of the shared daemon, if one is up.
std::optional<std::string> running_shared_daemon() {
  if (!distrust_of_base(base_dir()).empty()) return std::nullopt;
  std::optional<ControlClient> client = ControlClient::connect(shared_dir());
  if (!client) {
    // One that was ended takes its directory along.
    if (std::filesystem::exists(shared_dir() + "/" + abi::kControlSocket))
      std::cerr << "rocemu: the shared NIC has died (its log: " + shared_dir() +
                       ".log); this run has a private NIC of its own, which programs of other runs "
                       "do not reach. Start the shared one again: rocemu up\n";
    return std::nullopt;
  }
  client->require_same_version();
  return client->dir();
}

/// Of --expect and --update.
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
    if (update) throw UsageError("run: --update says nothing without --expect DIR");
    if (values.count("actual") != 0)
      throw UsageError("run: --actual says nothing without --expect DIR");
    return nullptr;
  }
  if (!values["lockstep"].as<bool>())
    throw UsageError("run: --expect needs --lockstep: other runs are never twice the same");
  if (update && values.count("actual") != 0)
    throw UsageError("run: with --update any run is as expected; leave out --actual");
  return std::make_unique<GoldenRun>(
      GoldenRun::Places{absolute("expect"), absolute("record"), absolute("actual")}, update);
}

/// True if there is a rule that never acted, which is said for each. `strict`: also if there is no
/// rule at all.
bool tell_of_idle_rules(const std::string& dir, bool strict) {
  std::optional<ControlClient> client = ControlClient::connect(dir);
  if (!client) return false;
  const Json reply = client->request("rules");
  if (strict && reply.at("rules").empty()) {
    std::cerr << "rocemu: warning: --strict says nothing, since there was no rule; give --scenario "
                 "FILE\n";
  }
  const std::vector<std::string> lines = idle_rules(reply);
  for (const std::string& line : lines) std::cerr << "rocemu: " + line + "\n";
  return !lines.empty();
}

/// Of --keep-on-failure.
struct KeptRun {
  std::string dir;
  std::string recorded_in;  // another directory, if the run is recorded in one anyhow
  bool is_recorded_there = false;
};

std::optional<KeptRun> make_kept_run(const po::variables_map& values, const GoldenRun* golden) {
  if (values.count("keep-on-failure") == 0) return std::nullopt;
  const std::string dir = values["keep-on-failure"].as<std::string>();
  if (dir.empty()) throw UsageError("run: --keep-on-failure needs the name of a directory");
  KeptRun kept{.dir = std::filesystem::absolute(dir).string(), .recorded_in = {}};
  if (golden != nullptr) {
    kept.recorded_in = golden->record_dir().string();
  } else if (values.count("record") != 0) {
    kept.recorded_in = std::filesystem::absolute(values["record"].as<std::string>()).string();
  }
  kept.is_recorded_there = kept.recorded_in.empty();
  for (const char* option : {"expect", "record", "actual"}) {
    if (values.count(option) != 0 &&
        std::filesystem::weakly_canonical(values[option].as<std::string>()) ==
            std::filesystem::weakly_canonical(kept.dir))
      throw UsageError("run: --keep-on-failure and --" + std::string(option) +
                       " are to be two directories");
  }
  // What an earlier run left would be taken for this one's.
  std::error_code ignored;
  std::filesystem::remove(kept.dir + kReportFile, ignored);
  remove_inner_recordings(kept.dir);
  remove_recording(kept.dir);
  make_directory(kept.dir);
  if (setenv(abi::kKeepVariable, kept.dir.c_str(), 1) != 0)
    fail_with_errno("cannot set a variable", errno);
  return kept;
}

/// Of --stacks, --stacks-by and --cores.
std::optional<StackFiles> make_stack_files(const po::variables_map& values) {
  const bool cores = values["cores"].as<bool>(), chooses = values.count("stacks-by") != 0;
  if (values.count("stacks") == 0) {
    if (cores || chooses)
      throw UsageError("run: --cores and --stacks-by say nothing without --stacks FILE");
    return std::nullopt;
  }
  const std::string wanted = chooses ? values["stacks-by"].as<std::string>() : "";
  if (chooses && !stack_tool_called(wanted))
    throw UsageError("run: --stacks-by '" + wanted +
                     "' is neither gdb nor eu-stack nor eu-stack-names");
  const auto tool = chooses ? stack_tool_called(wanted)
                    : cores ? std::optional(StackTool::kGdb)
                            : find_stack_tool(StackTool::kGdb);
  if (!tool) throw Failure("run: --stacks: " + std::string(kNoStackTool));
  if (cores && *tool != StackTool::kGdb) throw UsageError("run: --cores are written by gdb");
  if (!is_installed(*tool))
    throw Failure(std::string("run: --stacks: ") +
                  (*tool == StackTool::kGdb ? "gdb is not installed"
                                            : "eu-stack is not installed (Debian: elfutils)"));
  StackFiles files{.tool = *tool,
                   .file = std::filesystem::absolute(values["stacks"].as<std::string>()).string(),
                   .cores = cores};
  std::error_code ignored;
  std::filesystem::remove(files.file, ignored);  // what is added is of this run
  return files;
}

/// In turns and on the virtual clock programs are looked at by their numbers in /proc.
void require_own_proc() {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self", error).string();
  if (self != std::to_string(getpid()))
    throw Failure(
        "run: /proc is not that of this PID namespace, so that nothing can be known of the "
        "programs; "
        "mount it: unshare --pid --fork --mount-proc rocemu run ...");
}

/// The directory of --call-sites; empty if none are wanted.
std::string make_call_sites_dir(const po::variables_map& values) {
  if (values.count("call-sites") == 0) return "";
  const std::string given = values["call-sites"].as<std::string>();
  if (given.empty()) throw UsageError("run: --call-sites wants the name of a directory");
  std::string dir = std::filesystem::absolute(given).string();
  make_directory(dir);
  if (!std::filesystem::is_empty(dir))
    throw Failure("run: --call-sites: " + given + " has files already; give a new directory");
  return dir;
}

/// Where the run is recorded; empty if it is not.
std::string recording_dir(const po::variables_map& values, const GoldenRun* golden,
                          const std::optional<KeptRun>& kept) {
  if (golden != nullptr) return golden->record_dir().string();
  if (values.count("record") != 0) return values["record"].as<std::string>();
  return kept ? kept->dir : "";
}

/// --snap-length is for the recording's capture, too.
capture::CaptureLimits limits_of_recording(const po::variables_map& values) {
  return {.snap_length = options::check_options(values).snap_length};
}

void finish_kept_run(const KeptRun& kept, int status, const std::string& report,
                     capture::CaptureLimits limits) {
  if (status == 0) {
    remove_inner_recordings(kept.dir);
    return remove_recording(kept.dir);
  }
  take_inner_recordings(kept.dir);
  if (!std::filesystem::exists(kept.dir + journal::kCaptureFile))
    finish_recording(kept.dir, limits);
  if (!report.empty()) std::ofstream(kept.dir + kReportFile) << report;
  std::cerr << "rocemu: the run is kept in " + kept.dir + "\n";
}

/// The directory that is to have a capture in the end. What --expect only compares needs none.
std::string recording_to_finish(const po::variables_map& values) {
  if (values["no-trace"].as<bool>()) return "";
  if (values.count("record") != 0) return values["record"].as<std::string>();
  return values["update"].as<bool>() ? values["expect"].as<std::string>() : "";
}

/// As the daemon does of the programs that the command starts (daemon/run/unseen_programs.h): this
/// one may have ended before it can be looked at.
void tell_if_unseen(const std::string& command) {
  const std::string path = find_executable(command);
  const std::string name = std::filesystem::path(path).filename().string();
  const std::string why = why_out_of_reach(path, name);
  if (!why.empty())
    std::cerr << "rocemu: " + name + " " + why +
                     ": it takes no turns and has real time, so that what it does is left to "
                     "chance\n";
}

/// Ends the programs that the command has left in the background: their NIC has ended.
void end_left_programs(RunPrograms& programs, std::chrono::milliseconds patience) {
  if (programs.wait_until_gone(patience)) return;
  std::cerr << "rocemu: the command has ended, and its NIC with it; these programs, which it left "
               "in the background, are ended too:\n" +
                   list_programs(programs.list());
  programs.end();
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

}  // namespace

int run(const Arguments& arguments) {
  Arguments own = arguments;
  const po::options_description description = options::options_of(options::Command::kRun);
  const bool has_separator = std::ranges::find(own, "--") != own.end();
  Arguments command = take_command(own);
  if (!has_separator) {
    // Say what was probably meant: `rocemu run --lockstep ls -l`.
    if (const std::string word = word_of(own, description); !word.empty()) {
      std::string meant = "rocemu run";
      for (auto at = own.begin(); *at != word; ++at) meant += ' ' + *at;
      throw UsageError("run: the command stands behind '--': " + meant + " -- " + word);
    }
  }
  const po::variables_map values = parse_options("run", own, description);
  DaemonStart start{.arguments = daemon_arguments("run", values)};
  if (command.empty() || command[0].empty())
    throw UsageError("run: no command given; it stands behind '--': rocemu run -- ibv_devices");
  find_command(command[0]);  // throws before a NIC is started in vain
  start.scenario = read_scenarios(values);
  if (values.count("check-determinism") != 0) return check_determinism(values, own, command);

  const std::unique_ptr<GoldenRun> golden = make_golden_run(values);
  if (golden != nullptr && values.count("record") == 0) {
    start.arguments.insert(start.arguments.end(), {"--record", golden->record_dir()});
  }

  std::optional<WatchedTest> test;
  if (values.count("for-test") != 0) test.emplace(values["for-test"].as<std::string>());
  const std::string recording_for_outer_run = record_for_outer_run(values, start.arguments);
  const std::optional<KeptRun> kept = make_kept_run(values, golden.get());
  if (kept && kept->is_recorded_there)
    start.arguments.insert(start.arguments.end(), {"--record", kept->dir});
  std::optional<std::chrono::nanoseconds> timeout;
  if (values.count("timeout") != 0)
    timeout = parse_time("--timeout", values["timeout"].as<std::string>());
  std::chrono::nanoseconds poll_patience = std::chrono::seconds(5);
  if (values.count("poll-patience") != 0)
    poll_patience = parse_time("--poll-patience", values["poll-patience"].as<std::string>());
  const bool is_virtual =
      values["lockstep"].as<bool>() ||
      (values.count("clock") != 0 && values["clock"].as<std::string>() == "virtual");
  if (is_virtual) {
    require_own_proc();
    start.arguments.push_back("--report-stuck");
  }
  if (is_virtual) tell_if_unseen(command[0]);
  const bool reports_failures = values["report-failures"].as<bool>();
  if (reports_failures && !is_virtual)
    throw UsageError("run: --report-failures is for --lockstep and --clock virtual only");

  if (values.count("processor") != 0) {
    if (!values["lockstep"].as<bool>()) throw UsageError("run: --processor is for --lockstep only");
    stay_on_processor(static_cast<int>(values["processor"].as<uint64_t>()));
    // There is no second processor on which the NIC could wait awake.
    start.arguments.push_back("--no-spin");
  }
  const std::optional<StackFiles> stacks = make_stack_files(values);
  const std::string call_sites = make_call_sites_dir(values);
  std::optional<PrivateDaemon> daemon;
  std::optional<std::string> dir;
  int capture_descriptor = -1;
  const bool strict = values["strict"].as<bool>();
  if (!values["private"].as<bool>() && !strict && start.arguments.empty()) {
    dir = running_shared_daemon();
  }
  RunPrograms programs;
  // Until the daemon is ready a signal ends us at once: the daemon notices by itself.
  if (!dir) {
    const std::optional<capture::CaptureFile> capture = open_capture(values);
    if (capture) {
      capture_descriptor = capture->descriptor;
      start.capture_fd = capture->fd.get();
    }
    if ((timeout || test) && !is_virtual) start.arguments.push_back("--report-stuck");
    daemon.emplace(PrivateDaemon::start(start));
    dir = daemon->dir();
  }
  set_program_environment(*dir, call_sites);
  const bool stop_unrecorded =
      values.count("record-policy") != 0 && values["record-policy"].as<std::string>() == "stop";
  const Outcome outcome = supervise(command, programs,
                                    {.daemon = daemon ? &*daemon : nullptr,
                                     .dir = *dir,
                                     .capture_descriptor = capture_descriptor,
                                     .ends_with_daemon = stop_unrecorded,
                                     .is_virtual = is_virtual,
                                     .lockstep = values["lockstep"].as<bool>(),
                                     .mounts_sysfs = values["mount-sysfs"].as<bool>(),
                                     .tells_exits = reports_failures,
                                     .timeout = timeout,
                                     .poll_patience = poll_patience,
                                     .recording = recording_dir(values, golden.get(), kept),
                                     .stacks = stacks,
                                     .test = test ? &*test : nullptr});
  int status = outcome.status;
  if (daemon && !daemon->is_gone() && (strict || values.count("scenario") != 0) &&
      tell_of_idle_rules(*dir, strict) && strict && status == 0) {
    status = kExitFailure;
  }
  if (daemon) {
    const bool nic_was_gone = daemon->is_gone();
    // With turns the NIC itself lets programs finish their part of the run.
    if (!is_virtual) programs.wait_until_gone(kFinishing);
    const std::string trouble = daemon->stop();
    end_left_programs(programs, is_virtual ? kFinishing : std::chrono::milliseconds(0));
    if (!trouble.empty()) std::cerr << "rocemu: " + trouble + "\n";
    // What a program reports without its NIC, or a test of a NIC that crashed, is no success.
    if ((nic_was_gone || !trouble.empty()) && status == 0) status = kExitFailure;
    const std::string recording =
        recording_for_outer_run.empty() ? recording_to_finish(values) : recording_for_outer_run;
    if (!recording.empty() && !finish_recording(recording, limits_of_recording(values)) &&
        stop_unrecorded && status == 0) {
      status = kExitFailure;
    }
  }
  if (kept && !kept->is_recorded_there) copy_recording(kept->recorded_in, kept->dir);
  if (golden != nullptr && !golden->check() && status == 0) status = kExitFailure;
  if (kept) finish_kept_run(*kept, status, outcome.report, limits_of_recording(values));
  return status;
}

}  // namespace rocemu::command
