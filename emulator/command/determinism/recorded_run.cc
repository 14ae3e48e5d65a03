#include "emulator/command/determinism/recorded_run.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>

#include "emulator/command/base/error.h"
#include "emulator/command/determinism/load.h"
#include "emulator/command/recordings/recording_files.h"

namespace rocemu::command {
namespace fs = std::filesystem;
namespace {

constexpr char kOutputFile[] = "stdout";
constexpr char kErrorFile[] = "stderr";

std::string name_of(size_t number, Circumstances circumstances) {
  std::string beside;
  if (circumstances.beside_load) beside += ", beside a load";
  if (circumstances.on_one_processor) beside += ", on one processor";
  return "run " + std::to_string(number) + (beside.empty() ? "" : " (" + beside.substr(2) + ")");
}

std::string contents_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Keeps signals that would end us in a queue, so that nothing is left behind.
class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&signals_);
    for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT})
      sigaddset(&signals_, number);
    sigprocmask(SIG_BLOCK, &signals_, &before_);
  }
  ~HeldSignals() { restore(); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  void restore() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  siginfo_t next() const {
    siginfo_t info{};
    while (sigwaitinfo(&signals_, &info) < 0) {
    }
    return info;
  }

 private:
  sigset_t signals_{}, before_{};
};

/// The first that we may use.
void use_one_processor() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  for (size_t i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &allowed)) continue;
    CPU_ZERO(&allowed);
    CPU_SET(i, &allowed);
    sched_setaffinity(0, sizeof allowed, &allowed);
    return;
  }
}

void open_as(int descriptor, const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd < 0 || dup2(fd, descriptor) < 0) {
    dprintf(STDERR_FILENO, "rocemu: cannot open %s: %s\n", path.c_str(), strerror(errno));
    _exit(kExitFailure);
  }
}

pid_t start(Arguments& arguments, const fs::path& dir, bool on_one_processor,
            const HeldSignals& signals) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) fail_with_errno("cannot start another process", errno);
  if (pid > 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kExitFailure);
  signals.restore();
  if (on_one_processor) use_one_processor();
  open_as(STDIN_FILENO, "/dev/null", O_RDONLY);
  open_as(STDOUT_FILENO, dir / kOutputFile, O_WRONLY | O_CREAT | O_TRUNC);
  open_as(STDERR_FILENO, dir / kErrorFile, O_WRONLY | O_CREAT | O_TRUNC);
  execv("/proc/self/exe", argv.data());
  dprintf(STDERR_FILENO, "rocemu: cannot run rocemu itself: %s\n", strerror(errno));
  _exit(kExitFailure);
}

int wait_for(pid_t pid, const HeldSignals& signals) {
  std::optional<int> ended_by;
  for (;;) {
    const siginfo_t signal = signals.next();
    if (signal.si_signo != SIGCHLD) {
      ended_by = signal.si_signo;
      kill(pid, SIGTERM);
      continue;
    }
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) != pid) continue;
    if (ended_by) throw Error(kExitSignalBase + *ended_by, "run: ended by a signal");
    return WIFSIGNALED(status) ? kExitSignalBase + WTERMSIG(status) : WEXITSTATUS(status);
  }
}

/// Parts what rocemu said from what the command did. Behind the news of a hang there is only its
/// report.
void split_errors(const std::string& text, RecordedRun& run) {
  const bool hung = run.status == kExitHang || run.status == kExitTimeout;
  bool is_report = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool is_ours = line.starts_with("rocemu: ") || line.starts_with("rocemud: ");
    is_report = is_report || (hung && is_ours);
    if (is_ours || is_report) {
      run.notes.push_back(line);
    } else {
      run.errors += line + "\n";
    }
  }
}

}  // namespace

RecordedRun record_run(size_t number, Circumstances circumstances, const Arguments& options,
                       const Arguments& command, const fs::path& parent) {
  RecordedRun run{.name = name_of(number, circumstances),
                  .dir = parent / std::to_string(number),
                  .output = {},
                  .errors = {},
                  .notes = {}};
  make_directory(run.dir);
  Arguments arguments{"rocemu", "run"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), {"--record", run.dir.string(), "--"});
  arguments.insert(arguments.end(), command.begin(), command.end());
  const HeldSignals signals;
  {
    std::optional<Load> load;
    if (circumstances.beside_load) load.emplace();
    run.status =
        wait_for(start(arguments, run.dir, circumstances.on_one_processor, signals), signals);
  }
  run.output = contents_of(run.dir / kOutputFile);
  split_errors(contents_of(run.dir / kErrorFile), run);
  fs::remove(run.dir / kOutputFile);
  fs::remove(run.dir / kErrorFile);
  return run;
}

}  // namespace rocemu::command
