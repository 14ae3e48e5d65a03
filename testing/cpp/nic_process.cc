#include "testing/cpp/nic_process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "testing/cpp/rocemu/testing.h"
#include "testing/cpp/spawned_program.h"
#include "verbs_provider/shim/call.h"

namespace rocemu::testing {
namespace {

std::string read_line(int fd) {
  std::string line;
  for (char c = 0;;) {
    const ssize_t size = read(fd, &c, 1);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0 || c == '\n') return line;
    line += c;
  }
}

[[noreturn]] void fail(const std::string& what, int error) {
  throw Error(what + ": " + std::strerror(error));
}

}  // namespace

/// Returns the path of `rocemu`: the value of ROCEMU_COMMAND, or else bin/rocemu in one of the four
/// folders above the library that makes libibverbs see the NIC, or else "rocemu", which is found in
/// PATH. Since this function refers to the library, a linker with --as-needed does not omit the
/// library.
std::string find_command() {
  if (const char* chosen = std::getenv("ROCEMU_COMMAND")) return chosen;
  Dl_info library{};
  char path[PATH_MAX];
  if (dladdr(reinterpret_cast<void*>(&rocemu_call), &library) != 0 &&
      realpath(library.dli_fname, path) != nullptr) {
    std::string folder = path;
    for (int up = 0; up < 4 && folder.find('/') != std::string::npos; ++up) {
      folder.resize(folder.rfind('/'));
      std::string command = folder + "/bin/rocemu";
      if (access(command.c_str(), X_OK) == 0) return command;
    }
  }
  return "rocemu";
}

NicProcess::NicProcess(const std::vector<std::string>& options, const HangWatch& watch) {
  std::vector<std::string> words = {find_command(), "run", "--private", "--for-test=3,4"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(
      words.end(),
      {"--", "sh", "-c",
       "echo \"$ROCEMU_DIR\"; echo \"$LD_PRELOAD\"; echo \"$ROCEMU_SANITIZER_DIR\"; exec cat"});
  int input[2], output[2];  // close-on-exec: no other child may keep the NIC alive
  if (pipe2(input, O_CLOEXEC) != 0) fail("cannot make a pipe", errno);
  if (pipe2(output, O_CLOEXEC) != 0) {
    const int error = errno;
    close(input[0]);
    close(input[1]);
    fail("cannot make a pipe", error);
  }
  messages_fd_ = make_memory_file();
  const Spawned spawned = spawn(words, {}, input[0], output[1], messages_fd_,
                                {watch.fd(), STDERR_FILENO});  // abi/test_watch.h
  pid_ = spawned.pid;
  close(input[0]);
  close(output[1]);
  lifetime_fd_ = input[1];
  if (spawned.error == 0) {
    directory_ = read_line(output[0]);
    preload_ = read_line(output[0]);
    sanitizer_ = read_line(output[0]);
  }
  close(output[0]);
  if (!directory_.empty()) return;
  end();
  const std::string message = contents_of(messages_fd_);
  close(messages_fd_);
  if (spawned.error != 0)
    fail("cannot start " + words[0] + " (ROCEMU_COMMAND sets its path)", spawned.error);
  throw Error(words[0] +
              " could not start a NIC: " + message.substr(0, message.find_last_not_of('\n') + 1));
}

NicProcess::~NicProcess() {
  end();
  std::cerr << contents_of(messages_fd_);  // warnings, also about rules that never acted
  close(messages_fd_);
}

int NicProcess::end() {
  if (lifetime_fd_ >= 0) close(lifetime_fd_);
  lifetime_fd_ = -1;
  int status = 0;
  if (pid_ > 0) {
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  pid_ = -1;
  return status;
}

}  // namespace rocemu::testing
