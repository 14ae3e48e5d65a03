#include "emulator/command/run/supervise.h"

#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "emulator/abi/linux_names.h"
#include "emulator/abi/runtime_dir.h"
#include "emulator/command/base/error.h"
#include "emulator/command/daemons/control_client.h"
#include "emulator/command/daemons/process_exit.h"
#include "emulator/command/hangs/hang.h"
#include "emulator/command/hangs/noted_waits.h"
#include "emulator/command/hangs/told_waits.h"
#include "emulator/command/programs/executable.h"
#include "emulator/command/programs/installation.h"
#include "emulator/command/programs/mount_sysfs.h"
#include "emulator/command/run/ending.h"
#include "emulator/os/proc.h"
#include "emulator/os/programs/elf_file.h"
#include "emulator/os/programs/exec_refusal.h"

namespace rocemu::command {
namespace {

using Clock = std::chrono::steady_clock;

bool has_no_external_programs = false;  // expect_no_external_programs()

/// The signal by which the daemon reports that nothing can happen any more (--report-stuck). From
/// any other sender it is ignored, as by default.
constexpr int kStuckSignal = SIGURG;
constexpr std::chrono::seconds kMaxPause{2};
/// The time that a test gets to end by its exception, after its time limit has expired.
constexpr std::chrono::seconds kUnwinding{10};
/// The interval for checking programs that must end, or whose NIC has ended.
constexpr std::chrono::milliseconds kLookInterval{50};
/// kLongestLook: a thread must run for this time after --timeout before it is reported as running.
/// kBetweenLooks: the interval at which threads are inspected during that time.
constexpr std::chrono::milliseconds kLongestLook{500}, kBetweenLooks{5};

/// The signals that `rocemu run` takes from a queue while the command runs, so that they do not
/// kill it.
class SignalQueue {
 public:
  SignalQueue() {
    // If this process's parent ignores SIGCHLD, this process inherits that, and could not wait for
    // its children.
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &standard, &child_action_before_);
    // If the reader of a report closes the pipe early, neither rocemu nor the programs must end.
    struct sigaction ignored {};
    ignored.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignored, &pipe_action_before_);
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGCHLD);
    sigaddset(&signals_, kStuckSignal);
    // A signal that was ignored before stays ignored, as under nohup(1).
    for (const int number : {SIGTERM, SIGHUP, SIGINT, SIGQUIT})
      if (!is_ignored(number)) sigaddset(&signals_, number);
    sigprocmask(SIG_BLOCK, &signals_, &mask_before_);
  }
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  /// Restores the signal handlers and masks with which rocemu was started.
  void restore_in_child() const {
    sigaction(SIGCHLD, &child_action_before_, nullptr);
    sigaction(SIGPIPE, &pipe_action_before_, nullptr);
    sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  }

  /// Returns the next signal, or nothing if none arrives before the deadline.
  std::optional<siginfo_t> next(std::optional<Clock::time_point> deadline) const {
    for (;;) {
      siginfo_t info{};
      if (!deadline) {
        if (sigwaitinfo(&signals_, &info) > 0) return info;
        continue;
      }
      const auto left = std::max(*deadline - Clock::now(), Clock::duration(0));
      const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
      constexpr int64_t kBillion = 1'000'000'000;
      const timespec time{static_cast<time_t>(ns / kBillion), static_cast<long>(ns % kBillion)};
      if (sigtimedwait(&signals_, &info, &time) > 0) return info;
      if (errno == EAGAIN) return std::nullopt;
    }
  }

 private:
  static bool is_ignored(int number) {
    struct sigaction action {};
    return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
  }

  sigset_t signals_;
  sigset_t mask_before_;
  struct sigaction child_action_before_ {
  }, pipe_action_before_{};
};

/// Disables address space randomization. Frames contain addresses (RETH), and must be the same in
/// each run in lockstep.
void keep_addresses() {
  const int persona = personality(0xffffffff);
  if (persona >= 0) personality(static_cast<unsigned long>(persona) | ADDR_NO_RANDOMIZE);
}

/// Leaves the descriptor of a capture to the daemon. If it is standard output, other output goes to
/// standard error, as in other tools that write a capture to standard output. Otherwise closes it:
/// a descriptor that stays open would keep a reader of a pipe waiting.
void leave_to_capture(int descriptor) {
  if (descriptor == STDOUT_FILENO) dup2(STDERR_FILENO, STDOUT_FILENO);
  if (descriptor > STDERR_FILENO) close(descriptor);
}

/// Replaces this process by the command, or prints why that is impossible, and exits.
[[noreturn]] void execute(const std::string& path, char* const* argv) {
  execv(path.c_str(), argv);
  const int error = errno;
  // A shell executes a script without "#!" itself, and so does rocemu.
  if (error == ENOEXEC && !read_elf(path)) execvp(argv[0], argv);
  dprintf(STDERR_FILENO, "rocemu: cannot run '%s': %s\n", argv[0],
          describe_exec_error(path, error).c_str());
  _exit(error == ENOENT ? kExitNotFound : kExitNotExecutable);
}

/// Starts a process that calls `become`, which must not return, and waits until it executes a
/// program or ends. Meanwhile the process uses this process's memory, as after vfork(2): for a run
/// of `rocemu explore`, copying the page tables, and then the pages, would take longer than
/// everything else here.
template <class Become>
pid_t start_in_own_memory(const Become& become) {
  constexpr size_t kStack = size_t{256} << 10;  // bytes
  const auto stack = std::make_unique_for_overwrite<std::byte[]>(kStack);
  const auto call = [](void* argument) {
    (*static_cast<const Become*>(argument))();
    return 0;
  };
  return clone(call, stack.get() + kStack, CLONE_VM | CLONE_VFORK | SIGCHLD,
               const_cast<Become*>(&become));
}

/// In the child: prepares the process for the command, and executes it.
[[noreturn]] void become_command(const std::string& path, char* const* argv,
                                 const SignalQueue& signals, const Supervision& supervision) {
  signals.restore_in_child();
  leave_to_capture(supervision.capture_descriptor);
  if (supervision.lockstep) keep_addresses();
  if (supervision.mounts_sysfs) {
    if (const std::string obstacle = mount_sysfs(supervision.dir); !obstacle.empty()) {
      dprintf(STDERR_FILENO,
              "rocemu: --mount-sysfs: %s; without this option, programs that use the C "
              "library still see the devices (`rocemu doctor COMMAND` shows whether COMMAND "
              "does)\n",
              obstacle.c_str());
      _exit(kExitFailure);
    }
  }
  execute(path, argv);
}

pid_t start_command(Arguments& command, const SignalQueue& signals,
                    const Supervision& supervision) {
  std::vector<char*> argv;
  for (std::string& argument : command) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const std::string path = find_executable(command[0]);
  const auto become = [&] { become_command(path, argv.data(), signals, supervision); };
  // mount_sysfs() starts processes itself. A sanitizer follows fork(), but not clone().
  if (!supervision.mounts_sysfs && !is_sanitizer_build()) {
    const pid_t pid = start_in_own_memory(become);
    if (pid < 0) fail_with_errno("cannot start another process", errno);
    return pid;
  }
  const pid_t pid = fork();
  if (pid < 0) fail_with_errno("cannot start another process", errno);
  if (pid == 0) become();
  return pid;
}

int exit_status(int wait_status) {
  return WIFSIGNALED(wait_status) ? kExitSignalBase + WTERMSIG(wait_status)
                                  : WEXITSTATUS(wait_status);
}

/// Reports how an orphan ended. The NIC reports the ends of all other processes, but it may notice
/// the end of an orphan only after this process has reaped it.
void report_orphan(const siginfo_t& end, bool tells_exits) {
  std::string name = proc::contents_of(proc::directory_of(end.si_pid) + "/comm");
  while (!name.empty() && name.back() == '\n') name.pop_back();
  const std::string status = std::to_string(end.si_status);  // an exit status or a signal
  std::string how;
  if (end.si_code == CLD_EXITED) {
    if (tells_exits && end.si_status != 0) how = "ended with status " + status;
  } else if (tells_exits || proc::is_crash(end.si_status)) {
    const char* const signal = abi::signal_name(end.si_status);
    how = signal != nullptr ? std::string("received SIG") + signal : "received signal " + status;
  }
  if (!how.empty())
    std::cerr << "rocemu: " + name + " (pid " + std::to_string(end.si_pid) + ") " + how + "\n";
}

class Supervisor {
 public:
  Supervisor(Arguments& command, RunPrograms& programs, const Supervision& supervision)
      : programs_(programs),
        supervision_(supervision),
        deadline_(supervision.timeout ? std::optional(Clock::now() + *supervision.timeout)
                                      : std::nullopt) {
    if (supervision.lockstep) turns_ = TurnTableView::open(supervision.dir);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    name_ = std::filesystem::path(command[0]).filename().string();
    if (supervision.stacks)
      setenv(abi::kStacksVariable, std::to_string(getpid()).c_str(), /*overwrite=*/1);
    program_ = start_command(command, signals_, supervision);
    programs_.set_command(program_);
  }

  Outcome run();

 private:
  pid_t daemon_pid() const;
  bool is_daemon_gone() const {
    return supervision_.daemon != nullptr && supervision_.daemon->is_gone();
  }
  std::optional<Clock::time_point> next_wake() const;
  void on_time();
  void on_children();
  void on_signal(const siginfo_t& signal);
  void kill_programs();
  void on_daemon_end(int wait_status);
  void on_stuck(uint32_t serial);
  void look_without_nic();
  std::vector<BlockedThread> look() const;
  std::vector<BlockedThread> look_at_programs() const;
  Json ask_nic(const Json& arguments) const;
  Json ask_nics() const;
  void report_to_test();
  void end(int status, const std::string& why, const std::vector<BlockedThread>& threads,
           const Json& nic);
  void on_crash(const siginfo_t& signal) const;
  void add_stacks(pid_t process, const char* why) const;

  RunPrograms& programs_;
  const Supervision& supervision_;
  SignalQueue signals_;
  Ending ending_;
  std::optional<Clock::time_point> deadline_;
  std::optional<TurnTableView> turns_;
  pid_t program_ = 0;
  std::string name_;  // of the command
  std::optional<uint32_t> stuck_serial_;
  Clock::time_point stuck_since_{}, next_look_{}, next_report_{};
  std::optional<int> command_status_;  // set once the command has ended
  std::optional<Outcome> outcome_;
  std::string report_;
};

std::vector<BlockedThread> Supervisor::look() const {
  WatchedTest* const test = supervision_.test;
  std::vector<BlockedThread> threads =
      blocked_threads(test != nullptr ? test->programs() : programs_.list(), daemon_pid(),
                      turns_ ? turns_->waits() : ToldWaits(), has_no_external_programs);
  describe_by_notes(threads);
  if (test != nullptr) test->mark_waits(threads);
  return threads;
}

/// Inspects the threads until none runs, for at most kLongestLook. In lockstep, a thread that waits
/// for something outside the run gets a turn from time to time to check for it, so it may run
/// during one inspection.
std::vector<BlockedThread> Supervisor::look_at_programs() const {
  const Clock::time_point until = Clock::now() + kLongestLook;
  for (;;) {
    std::vector<BlockedThread> threads = look();
    const bool runs = std::ranges::any_of(
        threads, [](const BlockedThread& thread) { return thread.waker == Waker::kRuns; });
    if (!runs || Clock::now() >= until) return threads;
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

pid_t Supervisor::daemon_pid() const {
  return supervision_.daemon != nullptr && !supervision_.daemon->is_gone()
             ? supervision_.daemon->pid()
             : 0;
}

Outcome Supervisor::run() {
  on_children();  // a daemon that ended before SIGCHLD was blocked sends no signal
  while (!outcome_) {
    if (command_status_ && (!ending_.signal() || programs_.list().empty())) {
      outcome_ = {*command_status_, ""};
      break;
    }
    const std::optional<siginfo_t> signal = signals_.next(next_wake());
    if (!signal) {
      on_time();
    } else if (signal->si_signo == SIGCHLD) {
      on_children();
    } else if (signal->si_signo != kStuckSignal) {
      on_signal(*signal);
    } else if (signal->si_pid == daemon_pid()) {
      on_stuck(static_cast<uint32_t>(signal->si_value.sival_int));
    } else if (signal->si_code == SI_QUEUE) {
      on_crash(*signal);
    }
  }
  outcome_->report = report_;
  return *outcome_;
}

/// Returns the next time at which the supervisor must act even if no signal arrives.
std::optional<Clock::time_point> Supervisor::next_wake() const {
  std::optional<Clock::time_point> next = deadline_;
  const auto wake_at = [&](Clock::time_point time) { next = next ? std::min(*next, time) : time; };
  if (ending_.kill_at()) wake_at(*ending_.kill_at());
  // This process gets no signal when a child of another program ends, so it inspects the programs
  // regularly.
  if (is_daemon_gone() || command_status_) wake_at(Clock::now() + kLookInterval);
  return next;
}

void Supervisor::on_time() {
  if (ending_.kill_at() && Clock::now() >= *ending_.kill_at()) {
    kill_programs();
  } else if (deadline_ && Clock::now() >= *deadline_) {
    const std::vector<BlockedThread> threads = look_at_programs();
    end(kExitTimeout,
        supervision_.test != nullptr
            ? "the time limit of the test's NIC is over, and the test has not ended"
            : "--timeout is over, and the command has not ended",
        threads, ask_nics());
  } else if (is_daemon_gone()) {
    look_without_nic();
  }
}

void Supervisor::on_children() {
  int wait_status = 0;
  PrivateDaemon* const daemon = supervision_.daemon;
  if (daemon != nullptr && !daemon->is_gone() &&
      waitpid(daemon->pid(), &wait_status, WNOHANG) == daemon->pid()) {
    on_daemon_end(wait_status);
  }
  if (const std::optional<int> ended = programs_.command_status(); ended && !command_status_) {
    // The command's exit status alone could be one that a shell returned. The daemon reports the
    // crashes of all processes except the command.
    if (supervision_.lockstep && WIFSIGNALED(*ended) && proc::is_crash(WTERMSIG(*ended)))
      std::cerr << "rocemu: " + name_ + " (pid " + std::to_string(program_) + ") received SIG" +
                       abi::signal_name(WTERMSIG(*ended)) + "\n";
    command_status_ = exit_status(*ended);
  }
  for (siginfo_t info{};; info = {}) {  // reap orphans
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    if (!command_status_ && info.si_pid == program_) return;
    if (info.si_pid == daemon_pid()) return;
    if (supervision_.lockstep) report_orphan(info, supervision_.tells_exits);
    waitpid(info.si_pid, &wait_status, WNOHANG);
  }
}

/// Handles a signal. A terminal sends SIGINT and SIGQUIT to the command's whole process group, so
/// only the run's other programs get the signal from this process.
void Supervisor::on_signal(const siginfo_t& signal) {
  const bool is_from_terminal = signal.si_code == SI_KERNEL;
  const Ending::Action action =
      ending_.on_signal(signal.si_signo, catches(program_, signal.si_signo), Clock::now());
  if (action == Ending::Action::kPassOn)
    programs_.pass_on(signal.si_signo, is_from_terminal ? getpgrp() : 0);
  if (action == Ending::Action::kKill) kill_programs();
}

/// Kills the programs that remain after the grace time, or after a second Ctrl-C.
void Supervisor::kill_programs() {
  const std::vector<pid_t> left = programs_.list();
  if (!left.empty())
    std::cerr << "rocemu: programs that SIG" + std::string(abi::signal_name(*ending_.signal())) +
                     " did not end get SIGKILL:\n" + list_programs(left);
  programs_.kill_all();
  on_children();
  outcome_ = {command_status_ && *command_status_ != kExitSignalBase + SIGKILL
                  ? *command_status_
                  : kExitSignalBase + *ending_.signal(),
              ""};
}

void Supervisor::on_daemon_end(int wait_status) {
  const std::string why = "the emulated NIC is gone: rocemud " + describe_wait_status(wait_status);
  std::cerr << "rocemu: " + why + "\n";
  supervision_.daemon->reaped(wait_status);
  const std::vector<BlockedThread> threads = look();
  // A thread that only sleeps until some time needs no report.
  if (std::ranges::any_of(threads, [](const auto& one) { return one.waker == Waker::kNobody; })) {
    const std::string waits = describe_waits(threads, Json::object());
    std::cerr << waits;
    report_ = why + "\n" + waits;
  }
  if (supervision_.ends_with_daemon) programs_.pass_on(SIGTERM);
}

/// Checks for a deadlock after the NIC has ended, and reports it. By this time, a thread that the
/// NIC could have woken has noticed that the NIC is gone.
void Supervisor::look_without_nic() {
  const auto threads = find_hang([this] { return look(); }, /*counts_polling=*/false);
  if (!threads) return;
  end(kExitHang, "deadlock: the NIC is gone, and every thread waits for another", *threads,
      Json::object());
}

/// Checks for a deadlock when nothing can happen in the NIC. If a program waits for something
/// outside the run, there is none; then the NIC is not queried either, since a query is itself an
/// event.
void Supervisor::on_stuck(uint32_t serial) {
  if (stuck_serial_ != serial) {
    stuck_serial_ = serial;
    stuck_since_ = Clock::now();
  }
  const Clock::time_point begin = Clock::now();
  if (begin < next_look_ || begin < next_report_) return;
  const auto threads =
      find_hang([this] { return look(); }, begin - stuck_since_ >= supervision_.poll_patience);
  if (!threads) {
    // Inspecting many threads takes long. This pause limits the inspections to a tenth of the time.
    const Clock::time_point end = Clock::now();
    next_look_ = end + std::min<Clock::duration>(9 * (end - begin), kMaxPause);
    return;
  }
  const Json nic = ask_nic({{"serial", serial}});
  if (nic.is_null()) return;  // something has happened since
  const double now = nic.contains("now_ns") ? nic["now_ns"].get<double>() / 1e9 : 0;
  char time[32];
  std::snprintf(time, sizeof time, "%.6f", now);
  const bool any_polls = std::ranges::any_of(
      *threads, [](const BlockedThread& thread) { return thread.waker == Waker::kPolling; });
  end(kExitHang,
      std::string("deadlock at ") + time + " s of virtual time: every thread waits" +
          (any_polls ? " or polls without success" : "") +
          ", and no frame in transit or pending timeout can wake one",
      *threads, nic);
}

/// Returns the NIC's reply; null if the NIC refuses the request or has ended.
Json Supervisor::ask_nic(const Json& arguments) const {
  if (is_daemon_gone()) return {};
  try {
    std::optional<ControlClient> client =
        ControlClient::connect(supervision_.dir, std::chrono::seconds(5));
    return client ? client->request("hang", arguments) : Json();
  } catch (const Failure&) {
    return {};
  }
}

/// Returns the NIC's reply, together with the reports of other NICs: those of runs inside this run,
/// such as NICs that tests start.
Json Supervisor::ask_nics() const {
  Json all = ask_nic(Json::object());
  if (supervision_.test != nullptr) return all;
  for (const std::string& dir : programs_.nics_inside(daemon_pid())) {
    try {
      std::optional<ControlClient> client = ControlClient::connect(dir, std::chrono::seconds(5));
      if (!client) continue;
      const Json one = client->request("hang", Json::object());
      for (const auto& [key, value] : one.items()) {
        if (!value.is_array()) continue;
        for (const Json& entry : value) all[key].push_back(entry);
      }
    } catch (const Failure&) {
      // That NIC has ended meanwhile.
    }
  }
  return all;
}

void Supervisor::end(int status, const std::string& why, const std::vector<BlockedThread>& threads,
                     const Json& nic) {
  report_ = why + "\n" + describe_waits(threads, nic);
  if (is_daemon_gone() && !supervision_.recording.empty())
    report_ += recent_events(supervision_.recording);
  if (supervision_.test != nullptr) return report_to_test();
  std::cerr << "rocemu: " + report_;
  std::set<pid_t> waiting;  // processes that wait for more than their children
  for (const BlockedThread& thread : threads)
    if (!thread.what.starts_with("waits for its children")) waiting.insert(thread.process);
  if (supervision_.stacks)
    for (const pid_t process : waiting) add_stacks(process, "");
  programs_.end();
  on_children();  // reap all children before we end
  outcome_ = {status, ""};
}

/// Reports to the test. The test gets an exception in its waiting threads, or a signal, and then
/// continues or ends. The NIC stays as long as the test needs it.
void Supervisor::report_to_test() {
  if (supervision_.test->is_closing()) {
    report_.clear();
  } else {
    supervision_.test->report(report_);
  }
  next_report_ = Clock::now() + kEndingGrace;
  if (deadline_ && Clock::now() >= *deadline_) deadline_ = Clock::now() + kUnwinding;
}

/// Handles a program's crash. The program waits to be inspected before it dies.
void Supervisor::on_crash(const siginfo_t& signal) const {
  const std::vector<pid_t> programs = programs_.list();
  if (!supervision_.stacks || std::ranges::find(programs, signal.si_pid) == programs.end()) return;
  add_stacks(signal.si_pid, ", which crashes");
  syscall(SYS_tgkill, signal.si_pid, signal.si_value.sival_int, SIGCONT);
}

void Supervisor::add_stacks(pid_t process, const char* why) const {
  const StackFiles& to = *supervision_.stacks;
  std::string name = proc::contents_of(proc::directory_of(process) + "/comm");
  while (!name.empty() && name.back() == '\n') name.pop_back();
  const std::string number = std::to_string(process);
  const std::filesystem::path core =
      to.cores ? std::filesystem::path(to.file).parent_path() / ("core." + number) : "";
  const std::string stacks = stacks_of(to.tool, process, core.string());
  std::ofstream file(to.file, std::ios::app);
  file << "pid " + number + " (" + name + ")" + why + ":\n" << stacks << "\n";
  if (!file.flush()) std::cerr << "rocemu: cannot write " + to.file + "\n";
}

}  // namespace

void expect_no_external_programs() {
  has_no_external_programs = true;
}

Outcome supervise(Arguments& command, RunPrograms& programs, const Supervision& supervision) {
  return Supervisor(command, programs, supervision).run();
}

}  // namespace rocemu::command
