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

#include "emulator/abi/sanitizer_log.h"
#include "emulator/command/base/error.h"
#include "emulator/command/sanitizer/sanitizer_reports.h"

namespace rocemu::command {
namespace {

/// The log is read this often where the system has no watch left for it (inotify(7)).
constexpr int kReadIntervalMs = 50;

/// Returns a descriptor that is readable when the log has grown; none if there cannot be one.
UniqueFd watch_log(const std::string& directory) {
  UniqueFd watch(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  const std::string log = directory + "/" + abi::kSanitizerLog;
  if (watch && inotify_add_watch(watch.get(), log.c_str(), IN_MODIFY) < 0) watch.reset();
  return watch;
}

/// Prints until the other end of the pipe is closed. Returns SanitizerReports::finish().
bool print_all(const std::string& directory, int lifetime) {
  SanitizerReports reports(directory);
  const UniqueFd watch = watch_log(directory);
  for (;;) {
    reports.print_new();
    std::array<pollfd, 2> entries = {{{lifetime, POLLIN, 0}, {watch.get(), POLLIN, 0}}};
    poll(entries.data(), entries.size(), watch ? -1 : kReadIntervalMs);
    if (entries[0].revents != 0) return reports.finish();
    std::array<char, 4096> events{};
    while (watch && read(watch.get(), events.data(), events.size()) > 0) {
    }
  }
}

[[noreturn]] void be_printer(const std::string& directory, int lifetime, pid_t parent) {
  // It ends with the run, and not before the run's programs have ended.
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE}) {
    struct sigaction ignored {};
    ignored.sa_handler = SIG_IGN;
    sigaction(signal, &ignored, nullptr);
  }
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  dup2(null.get(), STDIN_FILENO);
  dup2(null.get(), STDOUT_FILENO);
  bool failed = true;
  try {
    failed = print_all(directory, lifetime);
  } catch (const std::exception& error) {
    dprintf(STDERR_FILENO, "rocemu: --sanitize: %s\n", error.what());
  }
  if (getppid() != parent) {  // `rocemu run` was killed, and left its files
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
  }
  _exit(failed ? kExitFailure : 0);
}

}  // namespace

FindingPrinter::FindingPrinter(const std::string& directory) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail_with_errno("cannot make a pipe", errno);
  const UniqueFd read_end(ends[0]);
  lifetime_.reset(ends[1]);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) fail_with_errno("cannot start another process", errno);
  if (pid_ > 0) return;
  lifetime_.reset();
  be_printer(directory, read_end.get(), parent);
}

FindingPrinter::~FindingPrinter() {
  if (pid_ > 0) finish();
}

bool FindingPrinter::finish() {
  lifetime_.reset();
  int status = 0;
  pid_t ended = 0;
  while ((ended = waitpid(pid_, &status, 0)) < 0 && errno == EINTR) {
  }
  const bool succeeded = ended == pid_ && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  pid_ = -1;
  return !succeeded;
}

}  // namespace rocemu::command
