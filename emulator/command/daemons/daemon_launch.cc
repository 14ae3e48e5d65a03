#include "emulator/command/daemons/daemon_launch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>

#include "emulator/abi/runtime_dir.h"
#include "emulator/command/base/error.h"
#include "emulator/command/daemons/become_daemon.h"
#include "emulator/command/daemons/default_runtime_dir.h"
#include "emulator/command/daemons/process_exit.h"
#include "emulator/command/programs/installation.h"
#include "emulator/os/process_limits.h"

namespace rocemu::command {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The time limit for a daemon to become ready. It is long because a machine may run fifty daemons
// at once: a daemon then waits for a processor, above all when hundreds of programs poll. 18 s were
// measured with 300 programs, and over 30 s in a test run. An unloaded machine never needs this
// long.
constexpr milliseconds kReadyTimeout = seconds(120);
constexpr milliseconds kStopTimeout = seconds(60);

// The numbers of the descriptors that the daemon inherits.
constexpr int kReadyFd = 3;
constexpr int kLifetimeFd = 4;
constexpr int kCaptureFd = 5;
constexpr int kScenarioFd = 6;
constexpr int kFirstOtherFd = 7;

struct Pipe {
  UniqueFd read_end, write_end;
};

Pipe make_pipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) fail_with_errno("cannot make a pipe", errno);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

/// Returns a memory file that contains the text, positioned at its beginning; nothing if the text
/// is empty.
UniqueFd file_of(const std::string& text) {
  if (text.empty()) return {};
  UniqueFd file(memfd_create("scenario", MFD_CLOEXEC));
  if (!file) fail_with_errno("cannot hand the scenario to rocemud", errno);
  for (size_t written = 0; written < text.size();) {
    const ssize_t count = pwrite(file.get(), text.data() + written, text.size() - written,
                                 static_cast<off_t>(written));
    if (count < 0) fail_with_errno("cannot hand the scenario to rocemud", errno);
    written += static_cast<size_t>(count);
  }
  return file;
}

/// Returns a null-terminated array of pointers into `strings`, as execve needs it.
std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Returns rocemu's environment without the variables that are meant for programs: the daemon uses
/// neither the shim nor other preloaded libraries.
std::vector<std::string> daemon_environment() {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable(*entry);
    if (!variable.starts_with("LD_PRELOAD=") &&
        !variable.starts_with(std::string(abi::kDirVariable) + "="))
      environment.emplace_back(variable);
  }
  return environment;
}

struct Launch {
  std::vector<std::string> arguments;  // rocemud's, from argv[0]
  int ready_fd;
  int lifetime_fd;  // -1 for none
  int log_fd;       // -1: our standard error
  int capture_fd;   // -1 for none
  int scenario_fd;  // -1 for none
  bool executes;    // false: the child continues as rocemud without execve(2), if it can
};

/// Blocks termination signals while in scope. A signal that arrives meanwhile is delivered on
/// destruction.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t held;
    sigemptyset(&held);
    for (const int number : {SIGTERM, SIGHUP, SIGINT, SIGQUIT}) sigaddset(&held, number);
    sigprocmask(SIG_BLOCK, &held, &before_);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

/// Duplicates descriptor `fd` as number `to`. If `fd` is -1, closes the descriptor with number `to`
/// instead.
void place(int fd, int to) {
  if (fd >= 0) {
    dup2(fd, to);
  } else {
    close(to);
  }
}

/// Becomes the daemon. Must be called in the child after fork().
[[noreturn]] void become_daemon(const Launch& launch, char* const* argv, char* const* envp) {
  // A ^C in the terminal is meant for the program and not for its NIC, so the NIC gets a separate
  // session.
  setsid();
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (chdir("/") != 0) _exit(kExitFailure);
  // The descriptor numbers used below may exceed the soft limit that this process inherited.
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }

  // Duplicates a descriptor to a number above those that the daemon's descriptors get, so that
  // place() cannot overwrite it.
  const auto out_of_the_way = [](int fd) {
    return fd < 0 ? -1 : fcntl(fd, F_DUPFD, 2 * kFirstOtherFd);
  };
  const int ready = out_of_the_way(launch.ready_fd);
  const int lifetime = out_of_the_way(launch.lifetime_fd);
  const int log = out_of_the_way(launch.log_fd);
  const int capture = out_of_the_way(launch.capture_fd);
  const int scenario = out_of_the_way(launch.scenario_fd);
  const int null = open("/dev/null", O_RDWR);
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  if (log >= 0) dup2(log, STDERR_FILENO);
  place(ready, kReadyFd);
  place(lifetime, kLifetimeFd);
  place(capture, kCaptureFd);
  place(scenario, kScenarioFd);
  // Closes all other descriptors. If the daemon kept the write end of a pipe open, a process that
  // reads the pipe until its end would hang.
  syscall(SYS_close_range, kFirstOtherFd, ~0u, 0);  // musl has no wrapper for it

  if (!launch.executes) continue_as_daemon(launch.arguments);
  execve(argv[0], argv, envp);
  dprintf(kReadyFd, "error: cannot start %s: %s\n", argv[0], strerror(errno));
  _exit(kExitFailure);
}

pid_t fork_daemon(Launch& launch) {
  std::vector<std::string> environment = daemon_environment();
  const std::vector<char*> argv = pointers_to(launch.arguments);
  const std::vector<char*> envp = pointers_to(environment);
  const pid_t pid = fork();
  if (pid < 0) fail_with_errno("cannot start another process", errno);
  if (pid == 0) become_daemon(launch, argv.data(), envp.data());
  return pid;
}

std::vector<std::string> command_line(const std::string& dir, const DaemonStart& start) {
  std::vector<std::string> line = {daemon_path(), "--dir", dir, "--ready-fd",
                                   std::to_string(kReadyFd)};
  line.insert(line.end(), start.arguments.begin(), start.arguments.end());
  if (start.capture_fd >= 0) line.insert(line.end(), {"--capture-fd", std::to_string(kCaptureFd)});
  if (!start.scenario.empty())
    line.insert(line.end(), {"--scenario-fd", std::to_string(kScenarioFd)});
  return line;
}

/// Reads the daemon's first line. Returns an empty string if the line says that the daemon is
/// ready. Otherwise returns the reason why it is not, or that it ended or exceeded the time limit.
std::string wait_until_ready(int ready_fd) {
  std::string line;
  const auto deadline = std::chrono::steady_clock::now() + kReadyTimeout;
  while (line.find('\n') == std::string::npos) {
    const auto left =
        std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd entry{.fd = ready_fd, .events = POLLIN, .revents = 0};
    const int events = left.count() <= 0 ? 0 : poll(&entry, 1, static_cast<int>(left.count()));
    if (events < 0 && errno == EINTR) continue;
    if (events <= 0)
      return "rocemud was not ready within " + std::to_string(kReadyTimeout / seconds(1)) + " s";
    char buffer[1024];
    const ssize_t count = read(ready_fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return "rocemud ended before it was ready";
    line.append(buffer, static_cast<size_t>(count));
  }
  line.resize(line.find('\n'));
  if (line == "ready") return "";
  constexpr std::string_view kErrorPrefix = "error: ";
  return line.starts_with(kErrorPrefix) ? line.substr(kErrorPrefix.size()) : "rocemud: " + line;
}

/// Waits until a child that is about to end has ended, and kills it if that exceeds the time limit.
/// Returns its wait status.
int reap(pid_t pid) {
  if (!wait_until_gone(pid, kStopTimeout)) kill(pid, SIGKILL);
  int wait_status = 0;
  while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR) {
  }
  return wait_status;
}

/// Throws the error `why` of a daemon that did not start: UsageError if the daemon's exit status
/// means wrong usage, else Failure.
[[noreturn]] void throw_start_error(const std::string& why, int wait_status) {
  if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == kExitUsage) throw UsageError(why);
  throw Failure(why);
}

void require_limits() {
  if (const std::string limit = too_small_limit(); !limit.empty())
    throw Failure("no NIC can be started: " + limit);
}

std::string check_dir(const std::string& dir) {
  if (fits_socket_address(dir)) return dir;
  throw Failure("the runtime directory's name is too long for a socket address: " + dir +
                "; set XDG_RUNTIME_DIR to a directory with a shorter name");
}

}  // namespace

PrivateDaemon::PrivateDaemon(std::string dir, pid_t pid, RunLifetime lifetime)
    : dir_(std::move(dir)), pid_(pid), lifetime_(std::move(lifetime)) {}

PrivateDaemon PrivateDaemon::start(const DaemonStart& start) {
  require_limits();
  // Signals are blocked until the daemon runs. From then on, the daemon removes its directories if
  // this process ends.
  std::optional<HeldSignals> held(std::in_place);
  const std::string base = private_base_dir();
  require_trust(base);
  const std::string dir = check_dir(new_private_dir(base));
  Pipe ready = make_pipe();
  RunLifetimeEnds lifetime = make_run_lifetime();
  const UniqueFd scenario = file_of(start.scenario);
  Launch launch{.arguments = command_line(dir, start),
                .ready_fd = ready.write_end.get(),
                .lifetime_fd = lifetime.follower.fd(),
                .log_fd = -1,
                .capture_fd = start.capture_fd,
                .scenario_fd = scenario.get(),
                .executes = !may_continue_as_daemon(daemon_path())};
  launch.arguments.insert(launch.arguments.end(), {"--lifetime-fd", std::to_string(kLifetimeFd),
                                                   "--run-pid", std::to_string(getpid())});
  PrivateDaemon daemon(dir, fork_daemon(launch), std::move(lifetime.run));
  held.reset();
  ready.write_end.reset();
  lifetime.follower.forget();
  if (const std::string why = wait_until_ready(ready.read_end.get()); !why.empty()) {
    daemon.stop();
    throw_start_error(why, *daemon.wait_status_);
  }
  require_trust(base);  // another user may have created it after the first check
  return daemon;
}

PrivateDaemon::~PrivateDaemon() {
  if (pid_ > 0 && lifetime_) stop();
}

void PrivateDaemon::reaped(int wait_status) {
  wait_status_ = wait_status;
}

std::string PrivateDaemon::stop() {
  if (stopped_) return "";
  stopped_ = true;
  lifetime_.end();
  const bool was_gone = is_gone();
  if (!was_gone) wait_status_ = reap(pid_);
  remove_remains(dir_);
  remove_empty_base(std::filesystem::path(dir_).parent_path());
  return was_gone || *wait_status_ == 0 ? "" : "rocemud " + describe_wait_status(*wait_status_);
}

void start_background_daemon(const std::string& dir, const DaemonStart& start,
                             const std::string& log_path) {
  check_dir(dir);
  require_limits();
  const UniqueFd log(open(log_path.c_str(),
                          O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!log) fail_with_errno("cannot write the log " + log_path, errno);
  Pipe ready = make_pipe();
  const UniqueFd scenario = file_of(start.scenario);
  Launch launch{.arguments = command_line(dir, start),
                .ready_fd = ready.write_end.get(),
                .lifetime_fd = -1,
                .log_fd = log.get(),
                .capture_fd = start.capture_fd,
                .scenario_fd = scenario.get(),
                .executes = true};
  // The daemon outlives this process: when this process ends, init becomes the daemon's parent.
  const pid_t pid = fork_daemon(launch);
  ready.write_end.reset();
  const std::string why = wait_until_ready(ready.read_end.get());
  if (why.empty()) return;
  throw_start_error(why, reap(pid));
}

OpenBase::OpenBase(const std::string& base) {
  do {
    create_base(base);
    directory_ = UniqueFd(open(base.c_str(), O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!directory_ && errno != ENOENT) fail_with_errno("cannot open " + base, errno);
  } while (!directory_);
}

bool OpenBase::made_fail(const std::string& dir, const std::string& why, int attempt) const {
  constexpr int kAttempts =
      20;  // each time, another daemon would have to end at just the wrong moment
  return attempt < kAttempts && was_removed() && why.find(dir) != std::string::npos;
}

bool OpenBase::was_removed() const {
  struct stat status;
  return fstat(directory_.get(), &status) == 0 && status.st_nlink == 0;
}

void OpenBase::lock() {
  while (flock(directory_.get(), LOCK_EX) != 0)
    if (errno != EINTR) fail_with_errno("cannot lock the runtime directory", errno);
}

}  // namespace rocemu::command
