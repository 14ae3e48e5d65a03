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
#include "emulator/os/elf_file.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

constexpr char kReportFile[] = "/report.txt";
/// The time that programs have to finish when the command ends, such as a server whose last client
/// has ended.
constexpr std::chrono::milliseconds kFinishing{200};

po::options_description options_of_run() {
  po::options_description options;
  options.add_options()("private", po::bool_switch(),
                        "a NIC of its own even if a shared one is up");
  options.add_options()("mount-sysfs", po::bool_switch(),
                        "mount the NIC's sysfs on /sys, in a namespace, for programs that read it "
                        "without the C library (in Go, static ones)");
  options.add_options()("strict", po::bool_switch(), "fail if a rule of the scenario never acted");
  options.add_options()("expect", po::value<std::string>()->value_name("DIR"),
                        "fail if the run differs from the recording in DIR (with --lockstep)");
  options.add_options()("update", po::bool_switch(), "record the run in the DIR of --expect");
  options.add_options()("actual", po::value<std::string>()->value_name("DIR"),
                        "with --expect, keep the recording of a run that differs in DIR; an equal "
                        "run leaves nothing there");
  options.add_options()("without-trace", po::bool_switch(),
                        "do not make trace.pcap of the frames when a recorded run is over: "
                        "rocemu replay --capture FILE DIR can do so later");
  options.add_options()("timeout", po::value<std::string>()->value_name("TIME"),
                        "after TIME (90, 1.5s, 2m; real time) report what each thread waits for, "
                        "end the programs, and exit with status 124");
  options.add_options()(
      "poll-patience", po::value<std::string>()->value_name("TIME"),
      "how long a program may poll in vain, with nothing under way or due, before "
      "that is a deadlock (default 5s; real time)");
  options.add_options()("keep-on-failure", po::value<std::string>()->value_name("DIR"),
                        "record the run in DIR, and keep the recording, its frames and the report "
                        "of a hang if the exit status is not 0");
  options.add_options()(
      "tell-exits", po::bool_switch(),
      "with --lockstep or --clock virtual, report each program of the run that "
      "ends with a status other than 0 or by a signal, which a shell may not report");
  options.add_options()("stacks", po::value<std::string>()->value_name("FILE"),
                        "write the stacks of all threads into FILE if the programs hang, or those "
                        "of a program that crashes (on a virtual clock), by gdb or eu-stack");
  options.add_options()("stacks-by", po::value<std::string>()->value_name("TOOL"),
                        "gdb, which shows lines and arguments (default, if installed); eu-stack, "
                        "which is faster and shows lines; or eu-stack-names, only functions");
  options.add_options()(
      "cores", po::bool_switch(),
      "with --stacks, write a core of each of these programs beside FILE; needs gdb");
  options.add_options()("call-sites", po::value<std::string>()->value_name("DIR"),
                        "have each process write into DIR/PID a line for each call of a verb or of "
                        "librdmacm, with a number for its call stack; DIR must be new or empty");
  options.add_options()("processor", po::value<int>()->value_name("N"),
                        "with --lockstep, keep the NIC and all programs on processor N, which is "
                        "faster, since only one thread runs at a time; the programs still see "
                        "all processors");
  options.add_options()("check-determinism", po::value<std::string>()->value_name("N"),
                        "with --lockstep, run the command N times, some of them beside a load, and "
                        "report where two runs first differ and which call caused it");
  options.add(fabric_options());
  return options;
}

/// Options that help does not show: rocemu's test libraries start their NICs with them.
po::options_description all_options_of_run() {
  po::options_description options = options_of_run();
  options.add_options()("for-test", po::value<std::string>(),
                        "watch the parent, a test, in place of the command (abi/test_watch.h)");
  return options;
}

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
  if (values["without-trace"].as<bool>()) return "";
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

std::string run_help() {
  return "usage: rocemu run [options] -- COMMAND [ARGUMENT...]\n"
         "\n"
         "Runs COMMAND so that it, and every process it starts, sees emulated RDMA devices. Its\n"
         "input, output and exit status are its own; but with --capture - its standard output "
         "goes\n"
         "to standard error.\n"
         "\n"
         "The NIC is a daemon of this one run. It is gone, with all its files, when COMMAND ends;\n"
         "programs that COMMAND leaves in the background are named and ended then.\n"
         "If `rocemu up` started a shared NIC, COMMAND joins that one instead, unless any of the\n"
         "options below but --timeout, --poll-patience, --stacks, --call-sites and --mount-sysfs "
         "is\n"
         "given: each of them asks for a NIC of its own.\n"
         "\n" +
         to_text(options_of_run()) +
         "\n"
         "Exit status: that of COMMAND; 128+N if signal N ended it; 127 if there is no such\n"
         "program, 126 if it cannot be executed; 124 after --timeout; 123 for a deadlock; 2 for\n"
         "wrong usage; 1 if emulation failed, or if COMMAND succeeded and with --strict a rule\n"
         "never acted, with --expect the run was not as expected, or with --check-determinism two\n"
         "runs differed.\n"
         "\n"
         "SIGTERM, SIGHUP, SIGINT and SIGQUIT are passed on to every program of the run, in "
         "whatever\n"
         "process group or session. Programs that have not ended 2 s later are killed. If COMMAND\n"
         "catches or ignores SIGINT or SIGQUIT, it decides whether it ends; a second one within 2 "
         "s kills "
         "all.\n"
         "\n"
         "A deadlock is found at once on the virtual clock and in lockstep, and with any clock "
         "when\n"
         "the NIC has gone: every thread waits for another or for the NIC, and nothing is under "
         "way\n"
         "there or due. rocemu reports what each thread waits for, and ends the programs. A thread "
         "that\n"
         "sleeps for a time, or could be woken from outside (a terminal, a pipe, a connection, a\n"
         "signal), is no deadlock; one that only polls is after 5 s, or --poll-patience.\n"
         "\n"
         "In lockstep all processes and threads of a run go on one at a time in a fixed order: "
         "frames,\n"
         "completions and outputs are the same to the byte each time. That covers dynamically "
         "linked\n"
         "programs that wait by calls of the C library; docs/design/turns.md lists the limits.\n"
         "\n"
         "Examples:\n"
         "  rocemu run -- ibv_devinfo -v\n"
         "  rocemu run --devices 4 -- python3 -m pytest tests/rdma\n"
         "  rocemu run --device mlx5_0=10.0.0.1 --device mlx5_1=10.0.0.2,fd00::2 -- ./my_test\n"
         "  rocemu run --scenario rnr.yaml --strict -- ./my_test\n"
         "  rocemu run --capture trace.pcap -- sh -c \\\n"
         "      'ibv_rc_pingpong -g 0 & sleep 1; ibv_rc_pingpong -g 0 127.0.0.1'\n"
         "  rocemu run --capture - -- ./my_test | tshark -r -\n"
         "  rocemu run --lockstep --expect golden --actual failed -- ./my_test\n"
         "  rocemu run --lockstep --check-determinism 10 -- ./my_test\n"
         "\n"
         "If COMMAND sees no devices: rocemu doctor COMMAND\n";
}

int run(const Arguments& arguments) {
  Arguments own = arguments;
  const bool has_separator = std::ranges::find(own, "--") != own.end();
  Arguments command = take_command(own);
  if (!has_separator) {
    // Say what was probably meant: `rocemu run --lockstep ls -l`.
    if (const std::string word = word_of(own, options_of_run()); !word.empty()) {
      std::string meant = "rocemu run";
      for (auto at = own.begin(); *at != word; ++at) meant += ' ' + *at;
      throw UsageError("run: the command stands behind '--': " + meant + " -- " + word);
    }
  }
  po::positional_options_description none;
  const po::variables_map values = parse_options("run", own, all_options_of_run(), none);
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
    start.arguments.push_back("--tell-stuck");
  }
  if (is_virtual) tell_if_unseen(command[0]);
  if (values["tell-exits"].as<bool>()) {
    if (!is_virtual)
      throw UsageError("run: --tell-exits is for --lockstep and --clock virtual only");
    start.arguments.push_back("--tell-exits");
  }

  if (values.count("processor") != 0) {
    if (!values["lockstep"].as<bool>()) throw UsageError("run: --processor is for --lockstep only");
    stay_on_processor(values["processor"].as<int>());
    // There is no second processor on which the NIC could wait awake.
    start.arguments.push_back("--sleep-between-turns");
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
    if ((timeout || test) && !is_virtual) start.arguments.push_back("--tell-stuck");
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
                                     .tells_exits = values["tell-exits"].as<bool>(),
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
