#include "emulator/os/run_lifetime.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace rocemu {

void RunLifetime::end() {
  // If the follower has already ended, the process that waits for it notices. So a failed send()
  // needs neither SIGPIPE nor an error.
  while (fd_ && send(fd_.get(), "", 1, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
  fd_.reset();
}

RunLifetimeEnds make_run_lifetime() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot make a pair of sockets");
  return {RunLifetime(UniqueFd(ends[0])), RunFollower(UniqueFd(ends[1]))};
}

RunState RunFollower::read() {
  std::array<char, 64> words{};
  const ssize_t size = ::read(fd_.get(), words.data(), words.size());
  if (size > 0) {
    ended_in_order_ = true;
    return RunState::kAlive;  // the end of file follows
  }
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return RunState::kAlive;
  return ended_in_order_ ? RunState::kEnded : RunState::kKilled;
}

}  // namespace rocemu
