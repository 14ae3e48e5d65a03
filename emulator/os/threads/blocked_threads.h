// Finds out from /proc what the threads of some processes wait for, and whether anything besides
// these threads could end the wait, such as a timeout or another process. This process must be
// allowed to trace the threads.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace rocemu {

/// What can end a thread's wait
enum class Waker : uint8_t {
  kNobody,    // only another thread of these processes, or the NIC
  kPolling,   // the thread itself: it polls a completion queue of the NIC
  kTime,      // the wait has an end, or the program may have set an alarm
  kExternal,  // another process, a peer, a user at a terminal, a signal from outside
  kRuns,      // it does not wait
};

struct BlockedThread {
  pid_t process = 0;
  pid_t thread = 0;
  std::string command;  // the thread's name
  Waker waker = Waker::kRuns;
  std::string what;  // "reads a pipe (descriptor 3)"
  /// The sockets for which the thread waits. The caller recognizes the NIC's sockets among them.
  struct Socket {
    int descriptor;
    uint64_t inode;
    uint64_t peer;  // its inode; 0 if it is not known
  };
  std::vector<Socket> sockets = {};
  std::string switches = {};  // its number of context switches, as text

  /// Returns "pid 12 (server)", with the number of the thread if it is not the first thread.
  std::string name() const;
};

/// The reason for its wait that a thread has published. The kernel only sees that the thread waits
/// for its turn.
struct ToldWait {
  long call = -1;  // the system call that would wait for it; below 0: none
  std::array<uint64_t, 4> arguments{};
  bool polls = false;
};
using ToldWaits = std::map<pid_t, ToldWait>;

/// Returns the descendants of `ancestor`, the oldest first. Omits those for which `leaves_out`
/// returns true, with all their descendants. `leaves_out` is called for a parent before its
/// children. Returns nothing if /proc belongs to another PID namespace.
std::vector<pid_t> descendants(pid_t ancestor, const std::function<bool(pid_t)>& leaves_out);

/// Returns all threads of these processes. `daemon` is the process of the NIC, or 0. `alone` is
/// true if no other program can be the peer for which a thread waits at a socket or FIFO.
std::vector<BlockedThread> blocked_threads(const std::vector<pid_t>& processes, pid_t daemon,
                                           const ToldWaits& told = {}, bool alone = false);

}  // namespace rocemu
