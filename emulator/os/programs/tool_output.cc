#include "emulator/os/programs/tool_output.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "emulator/os/temporary_directory.h"
#include "emulator/os/unique_fd.h"

namespace rocemu {
namespace {

/// The time limit for the tool. It is short because programs wait for the tool.
constexpr std::chrono::seconds kLongest{30};
constexpr size_t kMostText = size_t{4} << 20;

/// The exit status of a program whose libraries cannot be loaded, and of become_tool() if it cannot
/// execute the program.
constexpr int kExitNotLoaded = 127;

/// A directory with an empty file that has the name of elfutils' library for debuginfod servers.
/// The tools of elfutils load that library, and with it a web client and some 30 other libraries,
/// before they look whether a server is configured. That takes two thirds of the processor time of
/// eu-stack. A tool that finds the empty file first continues without the library.
class NoDebuginfod {
 public:
  NoDebuginfod() {
    const UniqueFd file(open((directory_.path() / "libdebuginfod.so.1").c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  }
  /// Returns the value of LD_LIBRARY_PATH with which a program finds the file.
  std::string library_path() const {
    const char* const before = std::getenv("LD_LIBRARY_PATH");
    return directory_.path().string() +
           (before != nullptr && *before != 0 ? std::string(":") + before : "");
  }

 private:
  TemporaryDirectory directory_;
};

/// Executes the tool in the child after fork(2), outside the run: without the run's environment
/// variables, and in a new process group.
[[noreturn]] void become_tool(std::vector<std::string>& words, const std::string& library_path,
                              int output) {
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const char* name : {"LD_PRELOAD", "ROCEMU_DIR", "ROCEMU_STACKS", "DEBUGINFOD_URLS"})
    unsetenv(name);
  if (!library_path.empty()) setenv("LD_LIBRARY_PATH", library_path.c_str(), /*overwrite=*/1);
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  _exit(kExitNotLoaded);
}

struct ToolRun {
  std::string text;
  bool is_loaded = true;  // false if the tool or one of its libraries is missing
};

ToolRun run_tool(std::vector<std::string> words, const std::string& library_path) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t pid = fork();
  if (pid < 0) return {};
  if (pid == 0) become_tool(words, library_path, write_end.get());
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
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return {std::move(text), !WIFEXITED(status) || WEXITSTATUS(status) != kExitNotLoaded};
}

}  // namespace

std::string output_of_tool(std::vector<std::string> words) {
  if (words.front().starts_with("eu-")) {
    try {
      const NoDebuginfod none;
      ToolRun run = run_tool(words, none.library_path());
      if (run.is_loaded) return std::move(run.text);
    } catch (const std::system_error&) {
      // There is no temporary directory.
    }
  }
  return run_tool(std::move(words), "").text;
}

}  // namespace rocemu
