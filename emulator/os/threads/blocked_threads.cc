#include "emulator/os/threads/blocked_threads.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "emulator/os/proc.h"
#include "emulator/os/threads/socket_peers.h"
#include "emulator/os/unique_fd.h"

namespace rocemu {
namespace {

using proc::contents_of;
using proc::descriptor_path;
using proc::directory_of;
using proc::field_of;
using proc::inode_in;
using proc::link_at;
using proc::numbers_in;

bool is_fifo(const std::string& path) {
  struct stat file {};
  return stat(path.c_str(), &file) == 0 && S_ISFIFO(file.st_mode);
}

template <class Value>
std::optional<Value> read_from(pid_t process, uint64_t address) {
  Value value;
  const iovec local{&value, sizeof value};
  const iovec remote{reinterpret_cast<void*>(address), sizeof value};
  if (process_vm_readv(process, &local, 1, &remote, 1, 0) != ssize_t{sizeof value}) {
    return std::nullopt;
  }
  return value;
}

/// The wait of one thread, as far as /proc shows it. If several things can end the wait, `waker` is
/// the likeliest of them.
struct Wait {
  Waker waker = Waker::kNobody;
  std::string what;
  std::vector<BlockedThread::Socket> sockets = {};

  void add(const Wait& other) {
    waker = std::max(waker, other.waker);
    if (!other.what.empty()) what += (what.empty() ? "" : ", ") + other.what;
    sockets.insert(sockets.end(), other.sockets.begin(), other.sockets.end());
  }
};

/// Examines all threads of a set of processes once.
class Observer {
 public:
  Observer(const std::vector<pid_t>& processes, pid_t daemon, const ToldWaits& told, bool alone)
      : in_order_(processes),
        processes_(processes.begin(), processes.end()),
        daemon_(daemon),
        told_(told),
        alone_(alone) {}

  std::vector<BlockedThread> look();

 private:
  struct Call {
    pid_t process;  // or another thread of it, if its main thread has ended
    pid_t thread;
    long number;
    std::array<uint64_t, 6> arguments;
  };

  BlockedThread look_at(pid_t process, pid_t thread);
  Wait wait_in(const Call& call);
  Wait wait_for_futex(const Call& call, uint64_t timeout);
  Wait wait_for_signal(pid_t process, bool has_timeout);
  Wait wait_for_children(pid_t process);
  Wait wait_in_poll(const Call& call, bool has_timeout);
  Wait wait_in_select(const Call& call, bool has_timeout);
  Wait wait_in_epoll(pid_t process, int descriptor, int depth);
  Wait wait_for(pid_t process, int descriptor, int depth = 0);
  Wait wait_for_socket(pid_t process, uint64_t inode, int descriptor);
  Wait wait_for_pipe(const std::string& link, int descriptor);
  /// Describes the wait of a thread in open(2). Only opening a FIFO waits for another program
  /// (fifo(7)).
  Wait wait_to_open(const Call& call, const std::string& directory, uint64_t path) const;
  /// Returns the waker of a thread that waits for a peer that has not connected yet.
  Waker unknown_peer() const { return alone_ ? Waker::kNobody : Waker::kExternal; }
  bool has_children(pid_t process) const;
  bool has_alarm(pid_t process) const;
  bool has_receive_timeout(pid_t process, int descriptor) const;
  std::string mapping_at(pid_t process, uint64_t address) const;
  bool is_mapped_externally(const std::string& mapping) const;
  void find_holders();
  /// Returns whether the NIC has stopped the thread because it spins
  /// (os/threads/spinning_threads.h).
  bool is_held_spinning(const std::string& status) const;
  /// Returns whether a process outside of the run has this pipe or socket open.
  bool is_held_externally(const std::string& link);
  bool is_held_by_daemon(const std::string& link);

  std::vector<pid_t> in_order_;
  std::set<pid_t> processes_;  // the same
  pid_t daemon_;
  const ToldWaits& told_;
  bool alone_;
  std::optional<std::map<std::string, std::set<pid_t>>> holders_;  // of pipes and sockets
  std::optional<std::map<uint64_t, uint64_t>> unix_peers_;
};

std::vector<BlockedThread> Observer::look() {
  std::vector<BlockedThread> threads;
  for (const pid_t process : in_order_) {
    std::vector<pid_t> of_process = numbers_in(directory_of(process) + "/task");
    proc::sort_by_age(of_process, process);
    for (const pid_t thread : of_process) {
      BlockedThread one = look_at(process, thread);
      if (one.thread != 0) threads.push_back(std::move(one));
    }
  }
  return threads;
}

bool Observer::is_held_spinning(const std::string& status) const {
  const std::string tracer = field_of(status, "TracerPid");
  return daemon_ != 0 && tracer != "0" &&
         !contents_of(directory_of(daemon_) + "/task/" + tracer + "/comm").empty();
}

/// Examines one thread. In the result, `thread` is 0 if the thread has ended.
BlockedThread Observer::look_at(pid_t process, pid_t thread) {
  const std::string directory = directory_of(process) + "/task/" + std::to_string(thread);
  const std::string status = contents_of(directory + "/status");
  const std::string state = field_of(status, "State");
  if (state.empty() || state[0] == 'Z' || state[0] == 'X') return {};
  BlockedThread one{process, thread, field_of(status, "Name"), Waker::kRuns, "runs"};
  const pid_t reached = proc::has_main_thread_ended(process) ? thread : process;
  one.switches = field_of(status, "voluntary_ctxt_switches") + "+" +
                 field_of(status, "nonvoluntary_ctxt_switches");
  if (state[0] == 't' && is_held_spinning(status)) {
    one.waker = Waker::kNobody;
    one.what = "spins: it repeatedly reads memory that does not change";
    one.switches.clear();  // it is made to run its loop from time to time
    return one;
  }
  if (state[0] == 'T' || state[0] == 't') {
    one.waker = Waker::kExternal;
    one.what = "is stopped";
    return one;
  }
  if (state[0] != 'S') return one;
  if (const auto found = told_.find(thread); found != told_.end()) {
    const ToldWait& told = found->second;
    one.switches.clear();  // it has turns in which it finds nothing
    Call call{reached, thread, told.call, {}};
    std::ranges::copy(told.arguments, call.arguments.begin());
    Wait wait = told.call >= 0 ? wait_in(call) : Wait{Waker::kRuns, "is about to continue"};
    if (told.polls) {
      wait.waker = std::max(wait.waker, Waker::kPolling);
      if (told.call == SYS_futex) wait.what = "polls a completion queue";
      if (told.call == SYS_sched_yield) wait = {Waker::kPolling, "yields repeatedly"};
      if (told.call == SYS_clock_gettime) wait = {Waker::kPolling, "reads a clock repeatedly"};
    }
    one.waker = wait.waker;
    one.what = wait.what;
    one.sockets = wait.sockets;
    return one;
  }
  const std::string text = contents_of(directory + "/syscall");
  Call call{reached, thread, -1, {}};
  if (std::sscanf(text.c_str(),
                  "%ld 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64
                  " 0x%" SCNx64,
                  &call.number, &call.arguments[0], &call.arguments[1], &call.arguments[2],
                  &call.arguments[3], &call.arguments[4], &call.arguments[5]) != 7) {
    if (!text.starts_with("running")) {
      one.waker = Waker::kExternal;
      one.what = "waits for an object that rocemu may not inspect";
    }
    return one;
  }
  const Wait wait = wait_in(call);
  one.waker = wait.waker;
  one.what = wait.what;
  one.sockets = wait.sockets;
  if (one.waker == Waker::kNobody && has_alarm(reached)) one.waker = Waker::kTime;
  return one;
}

Wait Observer::wait_in(const Call& call) {
  const auto& arguments = call.arguments;
  const auto descriptor = static_cast<int>(arguments[0]);
  switch (call.number) {
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
      return {Waker::kTime, "sleeps for a time"};
    case SYS_restart_syscall:
      return {Waker::kTime, "waits for a time"};
    case SYS_futex:
      return wait_for_futex(call, arguments[3]);
    case SYS_wait4:
    case SYS_waitid:
      return wait_for_children(call.process);
#ifdef SYS_pause
    case SYS_pause:
#endif
    case SYS_rt_sigsuspend:
      return wait_for_signal(call.process, false);
    case SYS_flock:
      return {Waker::kExternal, "waits for a lock of a file"};
    case SYS_semop:
    case SYS_semtimedop:
      return {Waker::kExternal, "waits for a semaphore of System V"};
    case SYS_msgrcv:
    case SYS_msgsnd:
    case SYS_mq_timedreceive:
    case SYS_mq_timedsend:
      return {Waker::kExternal, "waits for a message queue"};
    case SYS_rt_sigtimedwait:
      return wait_for_signal(call.process, arguments[2] != 0);
#ifdef SYS_poll
    case SYS_poll:
      return wait_in_poll(call, static_cast<int>(arguments[2]) >= 0);
    case SYS_select:
      return wait_in_select(call, arguments[4] != 0);
    case SYS_epoll_wait:
#endif
    case SYS_epoll_pwait: {
      Wait wait = wait_in_epoll(call.process, descriptor, 0);
      if (static_cast<int>(arguments[3]) >= 0) wait.waker = std::max(wait.waker, Waker::kTime);
      return wait;
    }
    case SYS_epoll_pwait2: {
      Wait wait = wait_in_epoll(call.process, descriptor, 0);
      if (arguments[3] != 0) wait.waker = std::max(wait.waker, Waker::kTime);
      return wait;
    }
    case SYS_ppoll:
      return wait_in_poll(call, arguments[2] != 0);
    case SYS_pselect6:
      return wait_in_select(call, arguments[4] != 0);
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_write:
    case SYS_writev:
    case SYS_sendto:
    case SYS_sendmsg: {
      Wait wait = wait_for(call.process, descriptor);
      if ((call.number == SYS_recvmmsg && arguments[4] != 0) ||
          has_receive_timeout(call.process, descriptor)) {
        wait.waker = std::max(wait.waker, Waker::kTime);
      }
      return wait;
    }
#ifdef SYS_open
    case SYS_open:
      return wait_to_open(call, "/cwd", arguments[0]);
#endif
    case SYS_openat:
    case SYS_openat2:
      return wait_to_open(call,
                          descriptor == AT_FDCWD ? "/cwd" : "/fd/" + std::to_string(descriptor),
                          arguments[1]);
    default:
      return {Waker::kExternal, "waits in system call " + std::to_string(call.number)};
  }
}

Wait Observer::wait_to_open(const Call& call, const std::string& directory, uint64_t path) const {
  std::string name;
  for (std::optional<char> c; name.size() < PATH_MAX; name += *c) {
    c = read_from<char>(call.process, path + name.size());
    if (!c || *c == '\0') break;
  }
  const std::string from = name.starts_with('/') ? "/root" : directory + "/";
  if (is_fifo(directory_of(call.process) + from + name))
    return {unknown_peer(), "waits for another program to open a FIFO"};
  return {Waker::kExternal, "waits in system call " + std::to_string(call.number)};
}

/// Describes the wait of a thread in futex(2). Other processes that map the memory of the futex may
/// end it.
Wait Observer::wait_for_futex(const Call& call, uint64_t timeout) {
  const auto operation = static_cast<int>(call.arguments[1]);
  const std::string mapping = mapping_at(call.process, call.arguments[0]);
  if (mapping.find("/memfd:rocemu-turns") != std::string::npos) {
    return {Waker::kRuns, "waits for its turn"};  // and has published no reason, or has just had it
  }
  if (mapping.find("/memfd:rocemu") != std::string::npos) {
    return {Waker::kPolling, "polls a completion queue"};
  }
  char address[32];
  std::snprintf(address, sizeof address, "0x%" PRIx64, call.arguments[0]);
  Wait wait{Waker::kNobody,
            std::string("waits for a lock, a condition or a thread (futex ") + address + ")"};
  const bool is_shared = (operation & FUTEX_PRIVATE_FLAG) == 0;
  if (is_shared && mapping.find(" rw-s ") != std::string::npos) {
    const bool outside = is_mapped_externally(mapping);
    if (outside) wait.waker = Waker::kExternal;
    wait.what += outside ? " in memory shared with others" : " in shared memory";
  }
  if (timeout != 0) {
    wait.waker = std::max(wait.waker, Waker::kTime);
    wait.what += ", for a time";
  }
  return wait;
}

/// Describes the wait of a thread for a signal. A process with children may wait for SIGCHLD, as
/// shells do.
Wait Observer::wait_for_signal(pid_t process, bool has_timeout) {
  if (has_timeout) return {Waker::kTime, "waits for a signal, for a time"};
  if (has_children(process)) return wait_for_children(process);
  return {Waker::kExternal, "waits for a signal"};
}

Wait Observer::wait_for_children(pid_t process) {
  std::string children;
  for (const pid_t thread : numbers_in(directory_of(process) + "/task")) {
    std::istringstream list(
        contents_of(directory_of(process) + "/task/" + std::to_string(thread) + "/children"));
    for (std::string child; list >> child;) children += (children.empty() ? "" : ", ") + child;
  }
  return {Waker::kNobody, "waits for its children (pid " + children + ")"};
}

Wait Observer::wait_in_poll(const Call& call, bool has_timeout) {
  constexpr uint64_t kMaxEntries = 4096;
  Wait wait;
  for (uint64_t i = 0; i < std::min(call.arguments[1], kMaxEntries); ++i) {
    const auto entry = read_from<pollfd>(call.process, call.arguments[0] + i * sizeof(pollfd));
    if (!entry) return {Waker::kExternal, "polls descriptors that rocemu may not inspect"};
    if (entry->fd >= 0) wait.add(wait_for(call.process, entry->fd));
  }
  if (has_timeout) wait.waker = std::max(wait.waker, Waker::kTime);
  if (wait.what.empty()) wait.what = "waits in poll for no descriptor";
  return wait;
}

Wait Observer::wait_in_select(const Call& call, bool has_timeout) {
  Wait wait;
  const auto count = static_cast<int>(std::min<uint64_t>(call.arguments[0], FD_SETSIZE));
  std::set<int> descriptors;
  for (int set = 1; set <= 3; ++set) {
    const uint64_t address = call.arguments[static_cast<size_t>(set)];
    if (address == 0) continue;
    for (int fd = 0; fd < count; ++fd) {
      const auto byte = read_from<uint8_t>(call.process, address + static_cast<uint64_t>(fd / 8));
      if (!byte)
        return {Waker::kExternal, "waits in select for descriptors that rocemu may not inspect"};
      if (((*byte >> (fd % 8)) & 1) != 0) descriptors.insert(fd);
    }
  }
  for (const int fd : descriptors) wait.add(wait_for(call.process, fd));
  if (has_timeout) wait.waker = std::max(wait.waker, Waker::kTime);
  if (wait.what.empty()) wait.what = "waits in select for no descriptor";
  return wait;
}

/// Describes the wait of a thread in epoll_wait(2). /proc/pid/fdinfo has a line "tfd: N events:
/// ..." for each watched descriptor (proc(5)).
Wait Observer::wait_in_epoll(pid_t process, int descriptor, int depth) {
  constexpr int kMaxDepth = 5;  // epoll(7): the maximum depth of nesting
  Wait wait;
  if (depth > kMaxDepth) return wait;
  std::set<int> descriptors;  // the kernel lists them in its own order
  std::istringstream lines(
      contents_of(directory_of(process) + "/fdinfo/" + std::to_string(descriptor)));
  for (std::string line; std::getline(lines, line);) {
    int watched = 0;
    if (std::sscanf(line.c_str(), "tfd: %d", &watched) == 1) descriptors.insert(watched);
  }
  for (const int watched : descriptors) wait.add(wait_for(process, watched, depth + 1));
  if (wait.what.empty()) wait.what = "waits in epoll for no descriptor";
  return wait;
}

Wait Observer::wait_for(pid_t process, int descriptor, int depth) {
  const std::string link = link_at(descriptor_path(process, descriptor));
  const std::string name = " (descriptor " + std::to_string(descriptor) + ")";
  if (const auto inode = inode_in(link, "socket")) {
    return wait_for_socket(process, *inode, descriptor);
  }
  if (inode_in(link, "pipe")) return wait_for_pipe(link, descriptor);
  if (alone_ && is_fifo(descriptor_path(process, descriptor)))
    return {Waker::kNobody, "waits for a FIFO" + name};
  if (link == "anon_inode:[eventfd]") return {Waker::kNobody, "waits for an eventfd" + name};
  if (link == "anon_inode:[eventpoll]") return wait_in_epoll(process, descriptor, depth);
  if (link == "anon_inode:[pidfd]") return {Waker::kNobody, "waits for a process" + name};
  if (link == "anon_inode:[signalfd]") return wait_for_signal(process, false);
  if (link == "anon_inode:[timerfd]") {
    const std::string info =
        contents_of(directory_of(process) + "/fdinfo/" + std::to_string(descriptor));
    const bool is_armed = field_of(info, "it_value") != "(0, 0)";
    return {is_armed ? Waker::kTime : Waker::kNobody,
            (is_armed ? "waits for a timerfd" : "waits for a timerfd that is not set") + name};
  }
  return {Waker::kExternal,
          "waits for " + (link.empty() ? "an object that rocemu may not inspect" : link) + name};
}

Wait Observer::wait_for_socket(pid_t process, uint64_t inode, int descriptor) {
  const std::string name = " (descriptor " + std::to_string(descriptor) + ")";
  if (!unix_peers_) unix_peers_ = peers_of_unix_sockets();
  uint64_t peer = 0;
  if (const auto found = unix_peers_->find(inode); found != unix_peers_->end()) {
    peer = found->second;
  } else if (const auto tcp = peer_of_tcp_socket(process, inode)) {
    peer = *tcp;
  }
  Wait wait{Waker::kExternal, "waits for a socket" + name, {{descriptor, inode, peer}}};
  if (peer == 0) {
    const std::string what = alone_ ? awaited_peer(process, inode) : "";
    if (!what.empty()) {
      wait.waker = Waker::kNobody;
      wait.what = "waits for " + what + name;
    }
    return wait;
  }
  const std::string link = "socket:[" + std::to_string(peer) + "]";
  if (is_held_by_daemon(link)) {
    wait.waker = Waker::kNobody;
    wait.what = "waits for the NIC" + name;
  } else if (!is_held_externally(link)) {
    wait.waker = Waker::kNobody;
    std::string others;
    for (const pid_t holder : (*holders_)[link]) {
      if (holder != process)
        others += (others.empty() ? " of pid " : ", ") + std::to_string(holder);
    }
    wait.what = "waits for a socket" + name + " whose other end is" +
                (others.empty() ? " its own" : " that" + others);
  }
  return wait;
}

/// Describes the wait of a thread for a pipe. A pipe that the NIC has open, such as its standard
/// error, counts as open outside of the run.
Wait Observer::wait_for_pipe(const std::string& link, int descriptor) {
  const bool outside = is_held_externally(link) || is_held_by_daemon(link);
  return {outside ? Waker::kExternal : Waker::kNobody,
          std::string("waits for a pipe") + (outside ? " from outside" : "") + " (descriptor " +
              std::to_string(descriptor) + ")"};
}

bool Observer::has_children(pid_t process) const {
  return std::ranges::any_of(numbers_in(directory_of(process) + "/task"), [&](pid_t thread) {
    return !contents_of(directory_of(process) + "/task/" + std::to_string(thread) + "/children")
                .empty();
  });
}

/// Returns whether the process may have set an alarm. /proc does not show whether an alarm(2) is
/// set, but a program that waits for one catches SIGALRM. /proc lists timers of timer_create(2),
/// but not whether they are set.
bool Observer::has_alarm(pid_t process) const {
  const std::string caught = field_of(contents_of(directory_of(process) + "/status"), "SigCgt");
  const uint64_t mask = std::strtoull(caught.c_str(), nullptr, 16);
  constexpr int kAlarm = 14;
  return ((mask >> (kAlarm - 1)) & 1) != 0 ||
         !contents_of(directory_of(process) + "/timers").empty();
}

/// Returns whether the socket has a timeout for receiving or sending (socket(7), SO_RCVTIMEO and
/// SO_SNDTIMEO).
bool Observer::has_receive_timeout(pid_t process, int descriptor) const {
#ifdef SYS_pidfd_getfd
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
  if (!pidfd) return false;
  const UniqueFd copy(static_cast<int>(syscall(SYS_pidfd_getfd, pidfd.get(), descriptor, 0)));
  if (!copy) return false;
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    timeval time{};
    socklen_t size = sizeof time;
    if (getsockopt(copy.get(), SOL_SOCKET, option, &time, &size) == 0 &&
        (time.tv_sec != 0 || time.tv_usec != 0)) {
      return true;
    }
  }
#endif
  return false;
}

/// Returns the line of /proc/pid/maps whose range contains the address.
std::string Observer::mapping_at(pid_t process, uint64_t address) const {
  std::istringstream lines(contents_of(directory_of(process) + "/maps"));
  for (std::string line; std::getline(lines, line);) {
    uint64_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64, &begin, &end) == 2 && address >= begin &&
        address < end) {
      return line;
    }
  }
  return "";
}

/// Returns whether a process outside of the run maps the same file as this line of /proc/pid/maps.
bool Observer::is_mapped_externally(const std::string& mapping) const {
  const auto file_of = [](const std::string& line) {  // its device and inode
    std::istringstream words(line);
    std::string addresses, permissions, offset, device, inode;
    words >> addresses >> permissions >> offset >> device >> inode;
    return device + " " + inode;
  };
  const std::string file = file_of(mapping);
  for (const pid_t process : numbers_in("/proc")) {
    if (processes_.contains(process)) continue;
    std::istringstream lines(contents_of(directory_of(process) + "/maps"));
    for (std::string line; std::getline(lines, line);) {
      if (line.find(file) != std::string::npos && file_of(line) == file) return true;
    }
  }
  return false;
}

void Observer::find_holders() {
  holders_.emplace();
  for (const pid_t process : numbers_in("/proc")) {
    std::string directory = directory_of(process) + "/fd/";
    if (processes_.contains(process) && proc::has_main_thread_ended(process)) {
      const std::vector<pid_t> threads = numbers_in(directory_of(process) + "/task");
      directory = directory_of(threads.empty() ? process : threads.back()) + "/fd/";
    }
    for (const pid_t descriptor : numbers_in(directory)) {
      const std::string link = link_at(directory + std::to_string(descriptor));
      if (link.starts_with("pipe:") || link.starts_with("socket:")) {
        (*holders_)[link].insert(process);
      }
    }
  }
}

bool Observer::is_held_externally(const std::string& link) {
  if (!holders_) find_holders();
  return std::ranges::any_of((*holders_)[link], [&](pid_t holder) {
    return !processes_.contains(holder) && holder != daemon_;
  });
}

bool Observer::is_held_by_daemon(const std::string& link) {
  if (!holders_) find_holders();
  return daemon_ != 0 && (*holders_)[link].contains(daemon_);
}

}  // namespace

std::string BlockedThread::name() const {
  std::string name = "pid " + std::to_string(process);
  if (thread != process) name += ", thread " + std::to_string(thread);
  return name + " (" + command + ")";
}

std::vector<pid_t> descendants(pid_t ancestor, const std::function<bool(pid_t)>& leaves_out) {
  std::vector<pid_t> found;
  if (!proc::is_of_this_namespace()) return found;
  std::vector<pid_t> more{ancestor};
  while (!more.empty()) {
    const pid_t process = more.back();
    more.pop_back();
    if (process != ancestor) found.push_back(process);
    for (const pid_t thread : numbers_in(directory_of(process) + "/task")) {
      std::istringstream list(
          contents_of(directory_of(process) + "/task/" + std::to_string(thread) + "/children"));
      for (pid_t child = 0; list >> child;) {
        if (!leaves_out(child)) more.push_back(child);
      }
    }
  }
  proc::sort_by_age(found, ancestor);
  return found;
}

std::vector<BlockedThread> blocked_threads(const std::vector<pid_t>& processes, pid_t daemon,
                                           const ToldWaits& told, bool alone) {
  return Observer(processes, daemon, told, alone).look();
}

}  // namespace rocemu
