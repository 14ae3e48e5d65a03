#include "emulator/command/supervise.h"

#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <thread>
#include <vector>

#include "emulator/abi/linux_names.h"
#include "emulator/abi/runtime_dir.h"
#include "emulator/command/daemons/control_client.h"
#include "emulator/command/daemons/process_exit.h"
#include "emulator/command/doctor/executable.h"
#include "emulator/command/error.h"
#include "emulator/command/hang.h"
#include "emulator/command/mount_sysfs.h"
#include "emulator/os/elf_file.h"
#include "emulator/os/exec_refusal.h"
#include "emulator/os/proc.h"

namespace rocemu::command {
namespace {

using Clock = std::chrono::steady_clock;

/// By this one the daemon says that nothing can happen any more (--tell-stuck). From anybody else
/// it means nothing, as it would if we did not take it.
constexpr int kStuckSignal = SIGURG;
constexpr std::chrono::seconds kLongestPause{2};
/// How often programs are looked at whose NIC has gone.
constexpr std::chrono::milliseconds kLookInterval{100};
/// When --timeout is over: how long a thread may run, and how often it is looked at meanwhile,
/// before it is reported as one that does.
constexpr std::chrono::milliseconds kLongestLook{500}, kBetweenLooks{5};

/// Signals that `rocemu run` takes from a queue while the command runs, instead of dying of them.
class SignalQueue {
 public:
  SignalQueue() {
    // If our parent ignores SIGCHLD, so do we, and then no child could be waited for.
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &standard, &child_action_before_);
    // Somebody who reads the beginning of a report only ends neither us nor, so, the programs.
    struct sigaction ignored {};
    ignored.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignored, &pipe_action_before_);
    sigemptyset(&signals_);
    for (const int number : {SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGQUIT, kStuckSignal})
      sigaddset(&signals_, number);
    sigprocmask(SIG_BLOCK, &signals_, &mask_before_);
  }
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  /// What the command must find as we found it.
  void restore_in_child() const {
    sigaction(SIGCHLD, &child_action_before_, nullptr);
    sigaction(SIGPIPE, &pipe_action_before_, nullptr);
    sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  }

  /// The next one; nothing if none comes by then.
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
  sigset_t signals_;
  sigset_t mask_before_;
  struct sigaction child_action_before_ {
  }, pipe_action_before_{};
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

/// Replaces this process by the command, or ends it with the reason for which that is impossible.
[[noreturn]] void execute(const std::string& path, char* const* argv) {
  execv(path.c_str(), argv);
  const int error = errno;
  // A script without "#!" is the shell's, as in a shell.
  if (error == ENOEXEC && !read_elf(path)) execvp(argv[0], argv);
  dprintf(STDERR_FILENO, "rocemu: cannot run '%s': %s\n", argv[0],
          describe_exec_error(path, error).c_str());
  _exit(error == ENOENT ? kExitNotFound : kExitNotExecutable);
}

pid_t start_command(Arguments& command, const SignalQueue& signals,
                    const Supervision& supervision) {
  std::vector<char*> argv;
  for (std::string& argument : command) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const std::string path = find_executable(command[0]);
  const pid_t pid = fork();
  if (pid < 0) fail_with_errno("cannot start another process", errno);
  if (pid > 0) return pid;
  signals.restore_in_child();
  leave_to_capture(supervision.capture_descriptor);
  if (supervision.lockstep) keep_addresses();
  if (supervision.mounts_sysfs) {
    if (const std::string obstacle = mount_sysfs(supervision.dir); !obstacle.empty()) {
      dprintf(STDERR_FILENO,
              "rocemu: --mount-sysfs: %s; without it programs that use the C library see the "
              "devices all the same (rocemu doctor COMMAND tells which do not)\n",
              obstacle.c_str());
      _exit(kExitFailure);
    }
  }
  execute(path, argv.data());
}

int exit_status(int wait_status) {
  return WIFSIGNALED(wait_status) ? kExitSignalBase + WTERMSIG(wait_status)
                                  : WEXITSTATUS(wait_status);
}

/// Reports how a process ended whose parent had ended before it. The NIC reports the ends of all
/// others, but it may come to this one only when we have waited for it.
void report_orphan(const siginfo_t& end, bool tells_exits) {
  std::string name = proc::contents_of(proc::directory_of(end.si_pid) + "/comm");
  while (!name.empty() && name.back() == '\n') name.pop_back();
  const std::string status = std::to_string(end.si_status);  // or the number of the signal
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
  Supervisor(Arguments& command, const Supervision& supervision)
      : supervision_(supervision),
        deadline_(supervision.timeout ? std::optional(Clock::now() + *supervision.timeout)
                                      : std::nullopt) {
    // A process that outlives its parent is still watched: it becomes a child of ours.
    if (supervision.is_virtual) turns_ = TurnTableView::open(supervision.dir);
    if (supervision.is_virtual || supervision.timeout) prctl(PR_SET_CHILD_SUBREAPER, 1);
    name_ = std::filesystem::path(command[0]).filename().string();
    if (supervision.stacks)
      setenv(abi::kStacksVariable, std::to_string(getpid()).c_str(), /*overwrite=*/1);
    program_ = start_command(command, signals_, supervision);
  }

  Outcome run();

 private:
  pid_t daemon_pid() const;
  bool is_daemon_gone() const {
    return supervision_.daemon != nullptr && supervision_.daemon->is_gone();
  }
  void on_children();
  void on_daemon_end(int wait_status);
  void on_stuck(uint32_t serial);
  void look_without_nic();
  std::vector<BlockedThread> look_at_programs() const;
  Json ask_nic(const Json& arguments) const;
  void end(int status, const std::string& why, const std::vector<BlockedThread>& threads,
           const Json& nic);
  void on_crash(const siginfo_t& signal) const;
  void add_stacks(pid_t process, const char* why) const;

  const Supervision& supervision_;
  SignalQueue signals_;
  std::optional<Clock::time_point> deadline_;
  std::optional<TurnTableView> turns_;
  pid_t program_ = 0;
  std::string name_;  // of the command
  std::optional<uint32_t> stuck_serial_;
  Clock::time_point stuck_since_{}, next_look_{};
  std::optional<Outcome> outcome_;
  std::string report_;
};

/// A thread that waits for something outside has a turn now and then, in which it looks for it:
/// those that run at the first look are looked at again.
std::vector<BlockedThread> Supervisor::look_at_programs() const {
  const Clock::time_point until = Clock::now() + kLongestLook;
  for (;;) {
    std::vector<BlockedThread> threads = blocked_threads(
        descendants(getpid(), daemon_pid()), daemon_pid(), turns_ ? turns_->waits() : ToldWaits());
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
  on_children();  // a daemon that ended before SIGCHLD was blocked has told nobody
  while (!outcome_) {
    std::optional<Clock::time_point> next = deadline_;
    const bool looks = is_daemon_gone();
    if (looks) {
      const Clock::time_point look = Clock::now() + kLookInterval;
      next = next ? std::min(*next, look) : look;
    }
    const std::optional<siginfo_t> signal = signals_.next(next);
    if (!signal) {
      if (deadline_ && Clock::now() >= *deadline_) {
        const std::vector<BlockedThread> threads = look_at_programs();
        end(kExitTimeout, "--timeout is over, and the command has not ended", threads,
            ask_nic(Json::object()));
      } else if (looks) {
        look_without_nic();
      }
      continue;
    }
    // A terminal sends SIGINT and SIGQUIT to the program as well, which decides what they mean.
    if (signal->si_signo == SIGTERM || signal->si_signo == SIGHUP) kill(program_, signal->si_signo);
    if (signal->si_signo == kStuckSignal && signal->si_pid == daemon_pid())
      on_stuck(static_cast<uint32_t>(signal->si_value.sival_int));
    else if (signal->si_signo == kStuckSignal && signal->si_code == SI_QUEUE)
      on_crash(*signal);
    if (signal->si_signo == SIGCHLD) on_children();
  }
  outcome_->report = report_;
  return *outcome_;
}

void Supervisor::on_children() {
  int wait_status = 0;
  PrivateDaemon* const daemon = supervision_.daemon;
  if (daemon != nullptr && !daemon->is_gone() &&
      waitpid(daemon->pid(), &wait_status, WNOHANG) == daemon->pid()) {
    on_daemon_end(wait_status);
  }
  if (waitpid(program_, &wait_status, WNOHANG) == program_) {
    // Its status alone could be that of a shell. Of all other processes the daemon tells.
    if (supervision_.lockstep && WIFSIGNALED(wait_status) && proc::is_crash(WTERMSIG(wait_status)))
      std::cerr << "rocemu: " + name_ + " (pid " + std::to_string(program_) + ") received SIG" +
                       abi::signal_name(WTERMSIG(wait_status)) + "\n";
    outcome_ = {exit_status(wait_status), ""};
    return;
  }
  for (siginfo_t info{};; info = {}) {  // orphans
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    if (info.si_pid == program_ || info.si_pid == daemon_pid()) return;
    if (supervision_.lockstep) report_orphan(info, supervision_.tells_exits);
    waitpid(info.si_pid, &wait_status, WNOHANG);
  }
}

void Supervisor::on_daemon_end(int wait_status) {
  const std::string why = "the emulated NIC is gone: rocemud " + describe_wait_status(wait_status);
  std::cerr << "rocemu: " + why + "\n";
  supervision_.daemon->reaped(wait_status);
  const std::vector<BlockedThread> threads = blocked_threads(descendants(getpid(), 0), 0);
  // Of threads that only sleep for a time there is nothing to tell.
  if (std::ranges::any_of(threads, [](const auto& one) { return one.waker == Waker::kNobody; })) {
    const std::string waits = describe_waits(threads, Json::object());
    std::cerr << waits;
    report_ = why + "\n" + waits;
  }
  if (supervision_.ends_with_daemon) kill(program_, SIGTERM);
}

/// A thread that could be woken by the NIC has seen by now that it is gone.
void Supervisor::look_without_nic() {
  const auto threads = find_hang(0, /*counts_polling=*/false);
  if (!threads) return;
  end(kExitHang, "deadlock: the NIC is gone, and every thread waits for another", *threads,
      Json::object());
}

/// Programs that wait for something from outside are left alone, and the NIC is not asked: that
/// would be another thing that happens.
void Supervisor::on_stuck(uint32_t serial) {
  if (stuck_serial_ != serial) {
    stuck_serial_ = serial;
    stuck_since_ = Clock::now();
  }
  const Clock::time_point begin = Clock::now();
  if (begin < next_look_) return;
  const auto threads = find_hang(daemon_pid(), begin - stuck_since_ >= supervision_.poll_patience,
                                 turns_ ? &*turns_ : nullptr);
  if (!threads) {
    // Of many threads that takes long, and is to take a tenth of the time at most.
    const Clock::time_point end = Clock::now();
    next_look_ = end + std::min<Clock::duration>(9 * (end - begin), kLongestPause);
    return;
  }
  const Json nic = ask_nic({{"serial", serial}});
  if (nic.is_null()) return;  // somebody did something just then
  const double now = nic.contains("now_ns") ? nic["now_ns"].get<double>() / 1e9 : 0;
  char time[32];
  std::snprintf(time, sizeof time, "%.6f", now);
  end(kExitHang,
      std::string("deadlock at ") + time +
          " s of virtual time: every thread waits, and nothing that is under way or due wakes one",
      *threads, nic);
}

/// Null if it refuses, or is gone.
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

void Supervisor::end(int status, const std::string& why, const std::vector<BlockedThread>& threads,
                     const Json& nic) {
  report_ = why + "\n" + describe_waits(threads, nic);
  if (is_daemon_gone() && !supervision_.recording.empty())
    report_ += recent_events(supervision_.recording);
  std::cerr << "rocemu: " + report_;
  std::set<pid_t> waiting;  // and not only for the others
  for (const BlockedThread& thread : threads)
    if (!thread.what.starts_with("waits for its children")) waiting.insert(thread.process);
  if (supervision_.stacks)
    for (const pid_t process : waiting) add_stacks(process, "");
  end_programs(daemon_pid());
  outcome_ = {status, ""};
}

/// A program waits to be looked at before it dies.
void Supervisor::on_crash(const siginfo_t& signal) const {
  const std::vector<pid_t> programs = descendants(getpid(), daemon_pid());
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

Outcome supervise(Arguments& command, const Supervision& supervision) {
  return Supervisor(command, supervision).run();
}

}  // namespace rocemu::command
