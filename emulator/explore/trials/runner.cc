#include "emulator/explore/trials/runner.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "emulator/explore/files.h"
#include "emulator/os/proc.h"
#include "emulator/os/processors.h"
#include "emulator/os/threads/runnable.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::explore {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr uintmax_t kMostBytes = uintmax_t{64} << 20;  // the limit of a run's output
constexpr milliseconds kLookInterval{20};
/// The time in which a run must report its hang after its time limit, before it is killed. It is
/// long, since the machine may be busy.
constexpr milliseconds kGrace{30'000};
/// The time limit for a NIC to end after its run was killed.
constexpr milliseconds kLongestEnd{3'000};
/// The time limit for drawing the timeline of a recording, which may be huge.
constexpr milliseconds kMaxCall{10'000};
/// The number of bytes of a run's output that are kept. The rest of a longer output is usually
/// repetition.
constexpr uintmax_t kMaxKept = uintmax_t{4} << 20;
/// The factor by which the time limit is longer for a run that is repeated to confirm another one
/// (Job::patiently).
constexpr int kPatience = 3;
/// The real time after which a program that polls without success counts as polling forever. The
/// second value is for Job::patiently.
constexpr const char *kPollPatience = "100ms", *kLongPollPatience = "2s";

bool write_text(const char* path, const std::string& text) {
  const UniqueFd file(open(path, O_WRONLY | O_CLOEXEC));
  return file && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

/// Enters a new network namespace. In it, each run finds its ports unused, and is invisible to
/// processes outside. Returns false, with errno, if the machine does not allow that.
bool enter_own_network() {
  const uid_t user = getuid();
  const gid_t group = getgid();
  if (unshare(CLONE_NEWNET) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
    if (!write_text("/proc/self/uid_map", std::to_string(user) + " " + std::to_string(user) + " 1"))
      return false;
    write_text("/proc/self/setgroups", "deny");
    write_text("/proc/self/gid_map", std::to_string(group) + " " + std::to_string(group) + " 1");
  }
  const UniqueFd any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq loopback{};
  std::strcpy(loopback.ifr_name, "lo");
  if (!any || ioctl(any.get(), SIOCGIFFLAGS, &loopback) != 0) return false;
  loopback.ifr_flags |= IFF_UP | IFF_RUNNING;
  return ioctl(any.get(), SIOCSIFFLAGS, &loopback) == 0;
}

std::string try_own_network() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::strerror(errno);
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t pid = fork();
  if (pid == 0) {
    const int error = enter_own_network() ? 0 : errno;
    _exit(write(write_end.get(), &error, sizeof error) == sizeof error ? 0 : 1);
  }
  write_end.reset();
  int error = EIO;
  [[maybe_unused]] const ssize_t size = read(read_end.get(), &error, sizeof error);
  waitpid(pid, nullptr, 0);
  return error == 0 ? "" : std::strerror(error);
}

/// Restores the default action of each signal that has a handler, and unblocks all signals.
void forget_signals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action = {};
    sigaction(signal, &action, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

void open_as(int descriptor, const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd < 0 || dup2(fd, descriptor) < 0) {
    dprintf(STDERR_FILENO, "rocemu: cannot open %s: %s\n", path.c_str(), strerror(errno));
    _exit(1);
  }
}

uintmax_t size_of(const fs::path& path) {
  std::error_code ignored;
  const uintmax_t size = fs::file_size(path, ignored);
  return ignored ? 0 : size;
}

/// Ends the process `pid`, which a killed run has left. A NIC gets time to end by itself and to
/// remove its directory; any other process is killed at once.
void end_stray(pid_t pid) {
  const Clock::time_point deadline = Clock::now() + kLongestEnd;
  while (proc::contents_of(proc::directory_of(pid) + "/comm") == "rocemud\n" &&
         Clock::now() < deadline) {
    if (waitpid(pid, nullptr, WNOHANG) != 0) return;
    std::this_thread::sleep_for(milliseconds(1));
  }
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

/// Moves the files of a finished run to the directory in which they are kept.
void keep_files(const fs::path& from, const fs::path& to) {
  std::error_code error;
  for (const char* name : {"stdout", "stderr"})
    if (size_of(from / name) > kMaxKept) fs::resize_file(from / name, kMaxKept, error);
  fs::create_directories(to.parent_path());
  fs::remove_all(to);  // the files from before the repetition
  fs::rename(from, to, error);
  if (!error) return;
  fs::create_directories(to);  // on another file system
  fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::overwrite_existing, error);
  if (error) throw std::system_error(error, "cannot write " + to.string());
}

}  // namespace

Runner::Runner(RunnerOptions options) : options_(std::move(options)) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // this process gets, and ends, what outlives a run
  if (options_.own_network) {
    obstacle_ = try_own_network();
    if (!obstacle_.empty()) options_.own_network = false;
  }
  if (options_.lockstep) prepare_is_runnable();
  if (options_.lockstep && options_.one_processor) {
    processors_ = allowed_processors();
    const auto own = std::ranges::find(processors_, sched_getcpu());
    if (own != processors_.end()) std::rotate(processors_.begin(), own, processors_.end());
  }
  // If runs share the network or files, they would disturb each other, so they are made one at a
  // time.
  const bool shares = !options_.own_network || !options_.compared_files.empty();
  if (shares) options_.jobs = 1;
}

Runner::~Runner() {
  end_all();
}

milliseconds Runner::time_for(const Job& job) const {
  return options_.timeout * (job.patiently ? kPatience : 1);
}

/// Returns one of the processors with the fewest runs. The first processor to be considered is that
/// of this process, because other explorations on the same machine begin with other processors.
std::optional<int> Runner::next_processor() const {
  std::optional<int> best;
  size_t fewest = SIZE_MAX;
  for (const int processor : processors_) {
    const auto runs = static_cast<size_t>(std::ranges::count(
        running_, std::optional(processor), [](const auto& one) { return one.second.processor; }));
    if (runs < fewest) {
      fewest = runs;
      best = processor;
    }
  }
  return best;
}

std::vector<std::string> Runner::arguments_for(const Job& job, const fs::path& dir,
                                               std::optional<int> processor) const {
  const std::string time = std::to_string(time_for(job).count()) + "ms";
  std::vector<std::string> arguments = {"run"};
  if (options_.lockstep)
    arguments.insert(arguments.end(), {"--lockstep", "--report-failures", "--poll-patience",
                                       job.patiently ? kLongPollPatience : kPollPatience});
  const std::vector<std::string> fabric = job.variation.added_to(options_.fabric);
  arguments.insert(arguments.end(), fabric.begin(), fabric.end());
  arguments.insert(arguments.end(), {"--timeout", time, "--record", dir.string()});
  if (options_.sanitizes)
    arguments.insert(arguments.end(), {"--sanitize-report", (dir / kMisuseFile).string()});
  if (job.tells_call_sites)
    arguments.insert(arguments.end(), {"--call-sites", (dir / kCallSitesFolder).string()});
  if (processor) arguments.insert(arguments.end(), {"--processor", std::to_string(*processor)});
  if (job.keep.empty()) arguments.emplace_back("--no-trace");  // the file would never be read
  if (!job.scenario.empty())
    arguments.insert(arguments.end(), {"--scenario", (dir / "scenario.yaml").string()});
  const bool cores = options_.cores && !job.keep.empty();
  if (const auto tool = find_stack_tool(cores ? StackTool::kGdb : job.stacks_by)) {
    arguments.insert(arguments.end(), {"--stacks", (dir / kStacksFile).string(), "--stacks-by",
                                       std::string(word_for(*tool))});
    if (cores) arguments.emplace_back("--cores");
  }
  arguments.emplace_back("--");
  arguments.insert(arguments.end(), options_.command.begin(), options_.command.end());
  return arguments;
}

void Runner::start(const Job& job) {
  const fs::path dir = options_.scratch / std::to_string(++started_);
  fs::create_directories(dir);
  write_file(dir / "scenario.yaml", job.scenario);
  for (const std::string& file : options_.compared_files) {
    std::error_code ignored;
    fs::remove(file, ignored);
  }
  const std::optional<int> processor = next_processor();
  const std::vector<std::string> arguments = arguments_for(job, dir, processor);
  std::cout.flush();  // otherwise the child would print it again
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "cannot start a process");
  if (pid == 0) {
    setpgid(0, 0);  // a ^C in the terminal is meant for the parent only
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    forget_signals();
    const rlimit no_core{0, 0};  // hundreds of core files would fill the disk
    setrlimit(RLIMIT_CORE, &no_core);
    open_as(STDIN_FILENO, "/dev/null", O_RDONLY);
    open_as(STDOUT_FILENO, (dir / "stdout").string(), O_WRONLY | O_CREAT | O_TRUNC);
    open_as(STDERR_FILENO, (dir / "stderr").string(), O_WRONLY | O_CREAT | O_TRUNC);
    const bool alone = options_.own_network && enter_own_network();
    const int status = options_.rocemu(arguments, alone);
    std::cout.flush();
    _exit(status);
  }
  running_.emplace(pid, Running{job, dir, Clock::now(), processor});
}

bool Runner::call(const std::vector<std::string>& arguments,
                  const std::function<bool()>& stops) const {
  std::cout.flush();
  const pid_t pid = fork();
  if (pid < 0) return false;
  if (pid == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    forget_signals();
    open_as(STDOUT_FILENO, "/dev/null", O_WRONLY);
    open_as(STDERR_FILENO, "/dev/null", O_WRONLY);
    _exit(options_.rocemu(arguments, /*alone=*/false));
  }
  const Clock::time_point deadline = Clock::now() + kMaxCall;
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (stops() || Clock::now() >= deadline) kill(pid, SIGKILL);
    std::this_thread::sleep_for(milliseconds(2));
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void Runner::finish(const Running& running, int status,
                    const std::function<void(const Job&, const RunFacts&)>& on_end) {
  RunFacts facts = read_facts(running.dir, status, "");
  facts.flood = running.flood;
  facts.runaway = running.runaway;
  facts.patiently = running.job.patiently;
  facts.took = Clock::now() - running.since;
  const Variation& variation = running.job.variation;
  if (running.job.tells_variation) {
    facts.stops = read_stops(running.dir);
    facts.choices = read_choices(running.dir, variation.adversarial_class());
  }
  if (!variation.empty()) facts.fired = facts.without_fault = true;
  for (const std::string& file : options_.compared_files)
    if (fs::exists(file)) facts.files[file] = contents_of(file);
  if (!options_.oracle.empty() && status == 0) {
    setenv("ROCEMU_RUN", running.dir.c_str(), 1);
    facts.oracle = WEXITSTATUS(system(options_.oracle.c_str()));
  }
  if (!running.job.keep.empty()) {
    keep_files(running.dir, running.job.keep);
  }
  std::error_code ignored;
  fs::remove_all(running.dir, ignored);
  on_end(running.job, facts);
}

/// Ends runs that exceed their time limit, or whose output or recording is endless.
void Runner::look_after() {
  const Clock::time_point now = Clock::now();
  for (auto& [pid, running] : running_) {
    const uintmax_t printed = size_of(running.dir / "stdout") + size_of(running.dir / "stderr");
    if (printed > kMostBytes && !running.flood) {
      running.flood = true;
      kill(pid, SIGTERM);
    }
    // The journal also has the payloads of messages: a sender of large messages may fill a disk in
    // seconds.
    const bool is_long = size_of(running.dir / "events.jsonl") > most_events_ ||
                         size_of(running.dir / "journal") > most_journal_;
    if (is_long && !running.runaway) {
      running.runaway = true;
      kill(pid, SIGTERM);
    }
    if (now - running.since > time_for(running.job) + kGrace) kill(pid, SIGKILL);
  }
}

/// Ends the child processes that this process did not start itself. They remain from a run that has
/// ended.
void Runner::end_strays() const {
  for (const pid_t thread : proc::numbers_in("/proc/self/task")) {
    std::string text = proc::contents_of("/proc/self/task/" + std::to_string(thread) + "/children");
    for (size_t at = 0; at < text.size();) {
      size_t end = text.find(' ', at);
      if (end == std::string::npos) end = text.size();
      const pid_t pid = std::atoi(text.substr(at, end - at).c_str());
      if (pid > 0 && !running_.contains(pid)) end_stray(pid);
      at = end + 1;
    }
  }
}

void Runner::end_all() {
  for (const auto& [pid, running] : running_) kill(pid, SIGTERM);
  const Clock::time_point deadline = Clock::now() + milliseconds(3000);
  while (!running_.empty()) {
    for (auto next = running_.begin(); next != running_.end();) {
      if (waitpid(next->first, nullptr, WNOHANG) == 0) {
        if (Clock::now() > deadline) kill(next->first, SIGKILL);
        ++next;
        continue;
      }
      std::error_code ignored;
      fs::remove_all(next->second.dir, ignored);
      next = running_.erase(next);
    }
    std::this_thread::sleep_for(milliseconds(5));
  }
  end_strays();
}

void Runner::run(const std::vector<Job>& jobs,
                 const std::function<void(const Job&, const RunFacts&)>& on_end,
                 const std::function<bool()>& stops) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, nullptr);
  size_t next = 0;
  const auto start_some = [&] {
    while (next < jobs.size() && running_.size() < options_.jobs) start(jobs[next++]);
  };
  while (next < jobs.size() || !running_.empty()) {
    if (stops()) return end_all();
    start_some();
    int wait_status = 0;
    const pid_t pid = waitpid(-1, &wait_status, WNOHANG);
    const auto found = pid > 0 ? running_.find(pid) : running_.end();
    if (found != running_.end()) {
      const Running running = std::move(found->second);
      running_.erase(found);
      end_strays();
      // Starts the next run before the facts of this one are processed, if the next run cannot
      // change them.
      if (options_.jobs > 1 && !stops()) start_some();
      finish(running,
             WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status),
             on_end);
      continue;
    }
    if (pid > 0) continue;
    look_after();
    const timespec time{0, std::chrono::nanoseconds(kLookInterval).count()};
    sigtimedwait(&child, nullptr, &time);
  }
}

}  // namespace rocemu::explore
