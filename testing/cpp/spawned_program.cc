#include "testing/cpp/spawned_program.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "testing/cpp/hang_watch.h"
#include "testing/cpp/rocemu/testing.h"

extern char** environ;

namespace rocemu::testing {
namespace {

constexpr std::chrono::milliseconds kLook{5};
constexpr std::chrono::seconds kPatience{5};  // then a program that should end is killed

}  // namespace

Spawned spawn(const std::vector<std::string>& argv, const std::vector<std::string>& variables,
              int input, int output, int errors, const std::vector<int>& further) {
  std::vector<std::string> words = argv;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<std::string> all = variables;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view variable = *one;
    const std::string_view name = variable.substr(0, variable.find('=') + 1);
    if (std::ranges::none_of(variables, [&](const auto& other) { return other.starts_with(name); }))
      all.emplace_back(variable);
  }
  std::vector<char*> environment;
  for (std::string& variable : all) environment.push_back(variable.data());
  environment.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // Moves the descriptors away from the numbers that they will get. If a descriptor already has its
  // number, an action on it makes it stay open (posix_spawn_file_actions_adddup2(3p)).
  int beyond = std::max({STDERR_FILENO + static_cast<int>(further.size()), input, output, errors});
  for (const int fd : further) beyond = std::max(beyond, fd);
  ++beyond;
  for (size_t i = 0; i < further.size(); ++i)
    posix_spawn_file_actions_adddup2(&actions, further[i], beyond + static_cast<int>(i));
  if (input >= 0) posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  if (output >= 0) posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  if (errors >= 0) posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  for (size_t i = 0; i < further.size(); ++i) {
    posix_spawn_file_actions_adddup2(&actions, beyond + static_cast<int>(i),
                                     3 + static_cast<int>(i));
    posix_spawn_file_actions_addclose(&actions, beyond + static_cast<int>(i));
  }
  Spawned spawned;
  spawned.error = posix_spawnp(&spawned.pid, arguments[0], &actions, nullptr, arguments.data(),
                               environment.data());
  posix_spawn_file_actions_destroy(&actions);
  if (spawned.error != 0) spawned.pid = -1;
  return spawned;
}

int exit_status(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

int make_memory_file() {
  return memfd_create("rocemu-output", MFD_CLOEXEC);
}

std::string contents_of(int fd) {
  std::string text;
  char buffer[4096];
  for (off_t at = 0;;) {
    const ssize_t size = pread(fd, buffer, sizeof buffer, at);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return text;
    text.append(buffer, static_cast<size_t>(size));
    at += size;
  }
}

uint16_t free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  const bool found =
      fd >= 0 && bind(fd, generic, size) == 0 && getsockname(fd, generic, &size) == 0;
  if (fd >= 0) close(fd);
  if (!found) throw Error("there is no free port");
  return ntohs(address.sin_port);
}

Program::Program(const std::vector<std::string>& argv, const std::vector<std::string>& variables,
                 HangWatch* watch)
    : output_fd_(make_memory_file()), watch_(watch) {
  if (argv.empty()) throw Error("no program is named");
  name_ = argv[0];
  const Spawned spawned = spawn(argv, variables, -1, output_fd_, output_fd_);
  pid_ = spawned.pid;
  if (pid_ < 0) {
    close(output_fd_);
    throw Error("cannot start " + name_ + ": " + std::strerror(spawned.error));
  }
}

Program::~Program() {
  end();
  close(output_fd_);
}

bool Program::is_running() {
  if (status_) return false;
  int status = 0;
  pid_t ended = 0;
  while ((ended = waitpid(pid_, &status, WNOHANG)) < 0 && errno == EINTR) {
  }
  if (ended == 0) return true;
  status_ = ended == pid_ ? exit_status(status) : -1;
  return false;
}

int Program::wait(std::chrono::milliseconds timeout) {
  if (status_) return *status_;
  if (watch_ == nullptr) {  // the surrounding `rocemu run` detects hangs
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    status_ = exit_status(status);
  }
  const HangWatch::Waiting waiting(watch_);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (is_running()) {
    if (const std::optional<std::string> hang = waiting.hang())
      throw Error(name_ + " does not end: " + *hang + "it has printed:\n" + output());
    if (std::chrono::steady_clock::now() > deadline) {
      throw Error(name_ + " has not ended after " + std::to_string(timeout.count()) +
                  " ms; it has printed:\n" + output());
    }
    std::this_thread::sleep_for(kLook);
  }
  return *status_;
}

void Program::signal(int number) {
  if (is_running()) kill(pid_, number);
}

void Program::end() {
  signal(SIGTERM);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (is_running()) {
    if (std::chrono::steady_clock::now() > deadline) kill(pid_, SIGKILL);
    std::this_thread::sleep_for(kLook);
  }
}

std::string Program::output() const {
  return contents_of(output_fd_);
}

}  // namespace rocemu::testing
