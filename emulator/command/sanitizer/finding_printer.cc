#include "emulator/command/sanitizer/finding_printer.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <utility>

#include "emulator/abi/sanitizer_log.h"
#include "emulator/command/base/error.h"
#include "emulator/command/sanitizer/sanitizer_reports.h"

namespace rocemu::command {
namespace {

/// The interval for reading the log if the system has no inotify(7) watch left.
constexpr int kReadIntervalMs = 50;

/// Returns a descriptor that becomes readable when the log grows; an empty one if the log cannot be
/// watched.
UniqueFd watch_log(const std::string& directory) {
  UniqueFd watch(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  const std::string log = directory + "/" + abi::kSanitizerLog;
  if (watch && inotify_add_watch(watch.get(), log.c_str(), IN_MODIFY) < 0) watch.reset();
  return watch;
}

struct Printed {
  bool failed;  // what SanitizerReports::finish() returned
  RunState state;
};
/// Prints the findings until the run has ended.
Printed print_all(const std::string& directory, RunFollower& run) {
  SanitizerReports reports(directory);
  const UniqueFd watch = watch_log(directory);
  for (;;) {
    reports.print_new();
    std::array<pollfd, 2> entries = {{{run.fd(), POLLIN, 0}, {watch.get(), POLLIN, 0}}};
    poll(entries.data(), entries.size(), watch ? -1 : kReadIntervalMs);
    if (entries[0].revents != 0) {
      const RunState state = run.read();
      if (state != RunState::kAlive) return {reports.finish(), state};
    }
    std::array<char, 4096> events{};
    while (watch && read(watch.get(), events.data(), events.size()) > 0) {
    }
  }
}

[[noreturn]] void be_printer(const std::string& directory, RunFollower& run) {
  // This process ends after the run's programs, when the run ends, and not at a signal.
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE}) {
    struct sigaction ignored {};
    ignored.sa_handler = SIG_IGN;
    sigaction(signal, &ignored, nullptr);
  }
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  dup2(null.get(), STDIN_FILENO);
  dup2(null.get(), STDOUT_FILENO);
  Printed printed{true, RunState::kEnded};
  try {
    printed = print_all(directory, run);
  } catch (const std::exception& error) {
    dprintf(STDERR_FILENO, "rocemu: --sanitize: %s\n", error.what());
  }
  if (printed.state == RunState::kKilled) {  // `rocemu run` left its files behind
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
  }
  _exit(printed.failed ? kExitFailure : 0);
}

}  // namespace

FindingPrinter::FindingPrinter(const std::string& directory) {
  RunLifetimeEnds ends = make_run_lifetime();
  lifetime_ = std::move(ends.run);
  pid_ = fork();
  if (pid_ < 0) fail_with_errno("cannot start another process", errno);
  if (pid_ > 0) return;
  lifetime_.forget();
  be_printer(directory, ends.follower);
}

FindingPrinter::~FindingPrinter() {
  if (pid_ > 0) finish();
}

bool FindingPrinter::finish() {
  lifetime_.end();
  int status = 0;
  pid_t ended = 0;
  while ((ended = waitpid(pid_, &status, 0)) < 0 && errno == EINTR) {
  }
  const bool succeeded = ended == pid_ && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  pid_ = -1;
  return !succeeded;
}

}  // namespace rocemu::command
