#include "emulator/os/programs/tool_output.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "emulator/os/unique_fd.h"

namespace rocemu {
namespace {

/// The time limit for the tool. It is short because programs wait for the tool.
constexpr std::chrono::seconds kLongest{30};
constexpr size_t kMostText = size_t{4} << 20;

/// Executes the tool in the child after fork(2), outside the run: without the run's environment
/// variables, and in a new process group.
[[noreturn]] void become_tool(std::vector<std::string>& words, int output) {
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const char* name : {"LD_PRELOAD", "ROCEMU_DIR", "ROCEMU_STACKS", "DEBUGINFOD_URLS"})
    unsetenv(name);
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  _exit(127);
}

}  // namespace

std::string output_of_tool(std::vector<std::string> words) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "";
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t pid = fork();
  if (pid < 0) return "";
  if (pid == 0) become_tool(words, write_end.get());
  write_end.reset();
  std::string text;
  const auto deadline = std::chrono::steady_clock::now() + kLongest;
  char buffer[4096];
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd entry{read_end.get(), POLLIN, 0};
    const int ready = left.count() > 0 ? poll(&entry, 1, static_cast<int>(left.count())) : 0;
    if (ready < 0 && errno == EINTR) continue;
    const ssize_t size = ready > 0 ? read(read_end.get(), buffer, sizeof buffer) : 0;
    if (size <= 0) break;
    if (text.size() < kMostText) text.append(buffer, static_cast<size_t>(size));
  }
  kill(pid, SIGKILL);  // it has ended, unless it took too long
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return text;
}

}  // namespace rocemu
