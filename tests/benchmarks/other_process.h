// A process whose memory another process accesses without its help, as the daemon accesses the
// memory of programs.
#pragma once

#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <vector>

namespace rocemu::benchmarks {

/// A child process that has the parent's buffer at the same address. It does nothing until it is
/// killed.
class OtherProcess {
 public:
  explicit OtherProcess(size_t size) : buffer_(size, 'x'), pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::memset(buffer_.data(), 'y', buffer_.size());  // writing gives the child its own pages
    for (;;) pause();
  }
  ~OtherProcess() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

  pid_t pid() const { return pid_; }
  char* buffer() { return buffer_.data(); }

 private:
  std::vector<char> buffer_;
  pid_t pid_;
};

}  // namespace rocemu::benchmarks
