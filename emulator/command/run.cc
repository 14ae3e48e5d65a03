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
#include <iostream>
#include <memory>
#include <optional>

#include "emulator/abi/runtime_dir.h"
#include "emulator/command/daemons/control_client.h"
#include "emulator/command/daemons/daemon_launch.h"
#include "emulator/command/daemons/default_runtime_dir.h"
#include "emulator/command/daemons/process_exit.h"
#include "emulator/command/doctor/executable.h"
#include "emulator/command/doctor/installation.h"
#include "emulator/command/error.h"
#include "emulator/command/fabric_options.h"
#include "emulator/command/recordings/golden_run.h"
#include "emulator/command/recordings/recorded_capture.h"
#include "emulator/command/rule_reports.h"
#include "emulator/command/subcommand.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

po::options_description options_of_run() {
  po::options_description options;
  options.add_options()("private", po::bool_switch(),
                        "a NIC of its own even if a shared one is up");
  options.add_options()("strict", po::bool_switch(), "fail if a rule of the scenario never acted");
  options.add_options()("expect", po::value<std::string>()->value_name("DIR"),
                        "fail if the run is not as the one recorded in DIR (with --lockstep)");
  options.add_options()("update", po::bool_switch(), "record the run in the DIR of --expect");
  options.add(fabric_options());
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
  if (!client) return std::nullopt;
  client->require_same_version();
  return client->dir();
}

/// Of --expect and --update.
std::unique_ptr<GoldenRun> make_golden_run(const po::variables_map& values) {
  if (values.count("expect") == 0) {
    if (values["update"].as<bool>())
      throw UsageError("run: --update says nothing without --expect DIR");
    return nullptr;
  }
  if (!values["lockstep"].as<bool>())
    throw UsageError("run: --expect needs --lockstep: other runs are never twice the same");
  if (values.count("record") != 0 || values.count("capture") != 0)
    throw UsageError("run: --expect records by itself; leave out --record and --capture");
  const std::string dir = values["expect"].as<std::string>();
  if (dir.empty()) throw UsageError("run: --expect needs the name of a directory");
  return std::make_unique<GoldenRun>(std::filesystem::absolute(dir), values["update"].as<bool>());
}

void set_variable(const char* name, const std::string& value) {
  if (setenv(name, value.c_str(), 1) != 0) fail_with_errno("cannot set a variable", errno);
}

/// The shim says the same to AddressSanitizer (sanitizer_options.cc), except to a program that has
/// default options itself. What the user chose stands behind it, and so counts.
void allow_address_sanitizer() {
  constexpr char kVariable[] = "ASAN_OPTIONS";
  const char* const variable = std::getenv(kVariable);
  const std::string given = variable != nullptr ? variable : "";
  std::string options = "verify_asan_link_order=0";
  if (given.starts_with(options)) return;  // inside another `rocemu run`
  if (!given.empty()) options += ":" + given;
  // A stock program's leaks are not ours to report.
  if (given.empty() && is_sanitized_with("address")) options += ":detect_leaks=0";
  set_variable(kVariable, options);
}

void set_environment(const std::string& dir) {
  const char* const preload = std::getenv("LD_PRELOAD");
  set_variable("LD_PRELOAD", preload_value(preload != nullptr ? preload : ""));
  set_variable(abi::kDirVariable, dir);
  allow_address_sanitizer();
  // What a stock program and its libraries do to memory of their own: how they agree is not seen.
  if (is_sanitized_with("thread")) setenv("TSAN_OPTIONS", "ignore_noninstrumented_modules=1", 0);
}

/// Signals that `rocemu run` takes from a queue while the command runs, instead of dying of them.
class SignalQueue {
 public:
  SignalQueue() {
    // If our parent ignores SIGCHLD, so do we, and then no child could be waited for.
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &standard, &child_action_before_);
    sigemptyset(&signals_);
    for (const int number : {SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGQUIT})
      sigaddset(&signals_, number);
    sigprocmask(SIG_BLOCK, &signals_, &mask_before_);
  }
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  /// What the command must find as we found it.
  void restore_in_child() const {
    sigaction(SIGCHLD, &child_action_before_, nullptr);
    sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  }

  int next() const {
    int number = 0;
    while (sigwait(&signals_, &number) != 0) {
    }
    return number;
  }

 private:
  sigset_t signals_;
  sigset_t mask_before_;
  struct sigaction child_action_before_ {};
};

/// Addresses are in frames (RETH): in lockstep they are to be the same each time.
void keep_addresses() {
  const int persona = personality(0xffffffff);
  if (persona >= 0) personality(static_cast<unsigned long>(persona) | ADDR_NO_RANDOMIZE);
}

/// The descriptor is the capture's: what is printed goes to standard error, as with other tools
/// that write a capture to standard output, and no other descriptor stays open to keep a reader
/// waiting.
void leave_to_capture(int descriptor) {
  if (descriptor == STDOUT_FILENO) dup2(STDERR_FILENO, STDOUT_FILENO);
  if (descriptor > STDERR_FILENO) close(descriptor);
}

pid_t start_command(Arguments& command, const SignalQueue& signals, int capture_descriptor,
                    bool lockstep) {
  std::vector<char*> argv;
  for (std::string& argument : command) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) fail_with_errno("cannot start another process", errno);
  if (pid > 0) return pid;
  signals.restore_in_child();
  leave_to_capture(capture_descriptor);
  if (lockstep) keep_addresses();
  execvp(argv[0], argv.data());
  const int error = errno;
  dprintf(STDERR_FILENO, "rocemu: cannot run '%s': %s\n", argv[0], strerror(error));
  _exit(error == ENOENT ? kExitNotFound : kExitNotExecutable);
}

int exit_status(int wait_status) {
  return WIFSIGNALED(wait_status) ? kExitSignalBase + WTERMSIG(wait_status)
                                  : WEXITSTATUS(wait_status);
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

/// Runs the command to its end and returns its exit status. `ends_with_daemon`: if its NIC goes, it
/// is to go too.
int supervise(Arguments& command, const SignalQueue& signals, std::optional<PrivateDaemon>& daemon,
              int capture_descriptor, bool ends_with_daemon, bool lockstep) {
  // A process that outlives its parent is still watched: it becomes a child of ours.
  if (lockstep) prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t program = start_command(command, signals, capture_descriptor, lockstep);
  for (;;) {
    const int number = signals.next();
    // A terminal sends SIGINT and SIGQUIT to the program as well, which decides what they mean.
    if (number == SIGTERM || number == SIGHUP) kill(program, number);
    if (number != SIGCHLD) continue;
    int wait_status = 0;
    if (daemon && waitpid(daemon->pid(), &wait_status, WNOHANG) == daemon->pid()) {
      std::cerr << "rocemu: the emulated NIC is gone: rocemud " +
                       describe_wait_status(wait_status) + "\n";
      daemon->reaped(wait_status);
      if (ends_with_daemon) kill(program, SIGTERM);
    }
    if (waitpid(program, &wait_status, WNOHANG) == program) return exit_status(wait_status);
  }
}

/// The directory that is to have a capture in the end. What --expect only compares needs none.
std::string recording_to_finish(const po::variables_map& values) {
  if (values.count("record") != 0) return values["record"].as<std::string>();
  return values["update"].as<bool>() ? values["expect"].as<std::string>() : "";
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
         "The NIC is a daemon of this one run. It is gone, with all its files, when COMMAND ends.\n"
         "If `rocemu up` started a shared NIC, COMMAND joins that one instead, unless any of the\n"
         "options below is given: each of them asks for a NIC of its own.\n"
         "\n" +
         to_text(options_of_run()) +
         "\n"
         "Exit status: that of COMMAND; 128+N if signal N killed it; 127 if there is no such\n"
         "program, 126 if it cannot be executed; 2 for wrong usage; 1 if emulation failed, or\n"
         "with --strict if COMMAND succeeded and a rule never acted.\n"
         "\n"
         "Examples:\n"
         "  rocemu run -- ibv_devinfo -v\n"
         "  rocemu run --devices 4 -- python3 -m pytest tests/rdma\n"
         "  rocemu run --device mlx5_0=10.0.0.1 --device mlx5_1=10.0.0.2,fd00::2 -- ./my_test\n"
         "  rocemu run --scenario rnr.yaml --strict -- ./my_test\n"
         "  rocemu run --capture trace.pcap -- sh -c \\\n"
         "      'ibv_rc_pingpong -g 0 & sleep 1; ibv_rc_pingpong -g 0 127.0.0.1'\n"
         "  rocemu run --capture - -- ./my_test | tshark -r -\n"
         "\n"
         "If COMMAND sees no devices: rocemu doctor COMMAND\n";
}

int run(const Arguments& arguments) {
  Arguments own = arguments;
  const bool has_separator = std::ranges::find(own, "--") != own.end();
  Arguments command = take_command(own);
  if (!has_separator) {
    // Say what was probably meant: `rocemu run ls -l`.
    const auto word = std::ranges::find_if(own, [](const auto& s) { return !s.starts_with("-"); });
    if (word == own.begin() && word != own.end())
      throw UsageError("run: the command stands behind '--': rocemu run -- " + *word);
  }
  po::positional_options_description none;
  const po::variables_map values = parse_options("run", own, options_of_run(), none);
  DaemonStart start{.arguments = daemon_arguments("run", values)};
  if (command.empty() || command[0].empty())
    throw UsageError("run: no command given; it stands behind '--': rocemu run -- ibv_devices");
  find_executable(command[0]);  // says so before a NIC is started in vain
  start.scenario = read_scenarios(values);

  const std::unique_ptr<GoldenRun> golden = make_golden_run(values);
  if (golden != nullptr) {
    start.arguments.insert(start.arguments.end(), {"--record", golden->record_dir()});
  }

  std::optional<PrivateDaemon> daemon;
  std::optional<std::string> dir;
  int capture_descriptor = -1;
  const bool strict = values["strict"].as<bool>();
  if (!values["private"].as<bool>() && !strict && start.arguments.empty()) {
    dir = running_shared_daemon();
  }
  // Until the daemon is ready a signal ends us at once: the daemon notices by itself.
  if (!dir) {
    const std::optional<capture::CaptureFile> capture = open_capture(values);
    if (capture) {
      capture_descriptor = capture->descriptor;
      start.capture_fd = capture->fd.get();
    }
    daemon.emplace(PrivateDaemon::start(start));
    dir = daemon->dir();
  }
  set_environment(*dir);
  const SignalQueue signals;
  const bool stop_unrecorded =
      values.count("record-policy") != 0 && values["record-policy"].as<std::string>() == "stop";
  int status = supervise(command, signals, daemon, capture_descriptor, stop_unrecorded,
                         values["lockstep"].as<bool>());
  if (daemon && !daemon->is_gone() && (strict || values.count("scenario") != 0) &&
      tell_of_idle_rules(*dir, strict) && strict && status == 0) {
    status = kExitFailure;
  }
  if (daemon) {
    const bool nic_was_gone = daemon->is_gone();
    const std::string trouble = daemon->stop();
    if (!trouble.empty()) std::cerr << "rocemu: " + trouble + "\n";
    // What a program reports without its NIC, or a test of a NIC that crashed, is no success.
    if ((nic_was_gone || !trouble.empty()) && status == 0) status = kExitFailure;
    const std::string recording = recording_to_finish(values);
    if (!recording.empty() && !finish_recording(recording) && stop_unrecorded && status == 0) {
      status = kExitFailure;
    }
  }
  if (golden != nullptr && !golden->check() && status == 0) status = kExitFailure;
  return status;
}

}  // namespace rocemu::command
