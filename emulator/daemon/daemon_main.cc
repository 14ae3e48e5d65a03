#include "emulator/daemon/daemon_main.h"

#include <fcntl.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include "emulator/daemon/base/other_nics.h"
#include "emulator/daemon/base/start_error.h"
#include "emulator/daemon/daemon.h"
#include "emulator/daemon/daemon_options.h"
#include "emulator/os/process_limits.h"
#include "emulator/os/run_lifetime.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {
namespace {

void set_up_logging(spdlog::level::level_enum level) {
  auto logger = spdlog::stderr_logger_mt("rocemud");
  logger->set_pattern("rocemud: %l: %v");
  logger->set_level(level);
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
}

/// Prepares the daemon's process: signals, limits and umask. Returns the user's umask.
mode_t set_up_process() {
  const mode_t users = umask(077);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ,
              SIG_IGN);  // a file that must not grow causes an error of write(), like a full disk
  prctl(PR_SET_TIMERSLACK, 1UL);  // the default would add 50 us to every retransmission timeout
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  return users;
}

/// Blocks the signals that request an orderly end, and returns a file descriptor for them. If
/// `has_parent` is true, SIGINT is ignored, since ^C at a terminal is for the program under test.
UniqueFd take_signals(bool has_parent) {
  sigset_t ending;
  sigemptyset(&ending);
  for (const int number : {SIGTERM, SIGHUP}) sigaddset(&ending, number);
  if (has_parent) {
    std::signal(SIGINT, SIG_IGN);
  } else {
    sigaddset(&ending, SIGINT);
  }
  if (sigprocmask(SIG_BLOCK, &ending, nullptr) != 0) fail_start("sigprocmask", errno);
  UniqueFd fd(signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) fail_start("signalfd", errno);
  return fd;
}

/// Blocks SIGCHLD, which reports that a traced thread has stopped. It then stays pending until
/// StoppedThread takes it (os/threads/stopped_thread.h).
void hold_back_sigchld() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  if (sigprocmask(SIG_BLOCK, &child, nullptr) != 0) fail_start("sigprocmask", errno);
}

/// Reports once, to the process that waits for the daemon, whether it could start.
class ReadySignal {
 public:
  explicit ReadySignal(int fd) : fd_(fd) {}
  /// Sends the line. Returns whether the waiting process received it.
  bool say(const std::string& line) {
    if (!fd_) return false;
    const ssize_t size = write(fd_.get(), line.data(), line.size());
    fd_.reset();
    return size == static_cast<ssize_t>(line.size());
  }

 private:
  UniqueFd fd_;
};

/// Runs the daemon until it must end, and returns its exit status.
int serve(Options options, ReadySignal& ready) {
  RunFollower run{UniqueFd(options.lifetime_fd)};
  set_own_directory(options.dir);
  const std::vector<NetworkInterface> interfaces = list_network_interfaces();
  if (options.udp.empty()) choose_addresses(options.fabric.devices, options.addresses, interfaces);
  hold_back_sigchld();
  const UniqueFd signals = take_signals(run.fd() >= 0);
  Daemon daemon(std::move(options), interfaces);
  EventLoop& loop = daemon.loop();
  const EventLoop::Watch signal_watch =
      loop.watch(signals.get(), EPOLLIN, [&](uint32_t) { daemon.stop(); });
  if (!signal_watch) fail_start("cannot watch for signals", errno);
  EventLoop::Watch lifetime_watch;
  RunState run_state = RunState::kAlive;
  if (run.fd() >= 0) {
    lifetime_watch = loop.watch(run.fd(), EPOLLIN, [&](uint32_t) {
      run_state = run.read();
      if (run_state != RunState::kAlive) daemon.stop();
    });
    if (!lifetime_watch) {
      throw UsageError("--lifetime-fd: the descriptor is neither a pipe nor a socket");
    }
  }
  ready.say("ready\n");
  const bool is_complete = daemon.run();
  if (run_state == RunState::kKilled) daemon.end_programs();
  return is_complete ? 0 : 1;
}

int fail(ReadySignal& ready, const std::exception& error, int status) {
  // The error is reported only once: to the process that waits for the daemon or, if there is none,
  // to the terminal.
  const std::string line = std::string("error: ") + error.what() + "\n";
  if (!ready.say(line)) std::fprintf(stderr, "rocemud: %s", line.c_str());
  return status;
}

int run(int argc, const char* const* argv) {
  ReadySignal ready(find_ready_fd(argc, argv));
  try {
    std::optional<Options> options = parse_options(argc, argv);
    if (!options) return 0;
    if (const std::string limit = too_small_limit(); !limit.empty())
      throw StartError("no NIC can be started: " + limit);
    set_up_logging(options->log_level);
    options->umask = set_up_process();
    return serve(std::move(*options), ready);
  } catch (const UsageError& error) {
    return fail(ready, error, 2);
  } catch (const std::exception& error) {
    return fail(ready, error, 1);
  }
}

}  // namespace

int daemon_main(int argc, const char* const* argv) {
  if (const std::string stack = too_small_stack(); !stack.empty()) {
    std::fprintf(stderr, "rocemud: error: no NIC can be started: %s\n", stack.c_str());
    return 1;
  }
  return run(argc, argv);
}

}  // namespace rocemu::daemon
