// Measures the minimum time that a network stack needs for the messages of ibv_rc_pingpong and
// ib_send_lat: two processes exchange UDP datagrams over loopback, one at a time. With `relayed`,
// each of the two processes has a relay, another process that has the socket. The process and its
// relay communicate by shared memory, like a program and a daemon. The relay does not process the
// data. With `acknowledged`, the process that has the socket answers each datagram with a short
// one, and the sender waits for that answer before it waits for the peer's datagram. Messages of a
// reliable connection work in the same way, since their sender waits for the completion.
//   udp_pingpong blocking|busy|relayed|acknowledged BYTES ITERATIONS
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

namespace {

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

/// Returns a socket on a port that the kernel chose.
int open_socket(sockaddr_in& address) {
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) fail("socket");
  address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    fail("bind");
  }
  return fd;
}

class Side {
 public:
  Side(int fd, const sockaddr_in& peer, bool busy, size_t bytes) : fd_(fd), data_(bytes) {
    if (connect(fd, reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0) fail("connect");
    if (busy) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  }
  void send_one() {
    if (send(fd_, data_.data(), data_.size(), 0) < 0) fail("send");
  }
  /// Receives a datagram. Returns false if none has arrived. Without `busy`, recv(2) blocks until a
  /// datagram arrives.
  bool receive_if_there() {
    if (recv(fd_, data_.data(), data_.size(), 0) >= 0) return true;
    if (errno != EAGAIN) fail("recv");
    return false;
  }
  void receive_one() {
    while (!receive_if_there()) sched_yield();
  }
  void acknowledge() {
    if (send(fd_, nullptr, 0, 0) < 0) fail("send");
  }
  /// The result of look(): whether a datagram arrived, and whether it was an acknowledgement.
  struct Came {
    bool any, is_acknowledgement;
  };
  Came look() {
    const ssize_t size = recv(fd_, data_.data(), data_.size(), 0);
    if (size < 0 && errno != EAGAIN) fail("recv");
    return {size >= 0, size == 0};
  }

 private:
  int fd_;
  std::vector<char> data_;
};

/// The memory that a program shares with the relay that has its socket.
struct Mailbox {
  alignas(64) std::atomic<unsigned long> sent{0};
  alignas(64) std::atomic<unsigned long> received{0};
  alignas(64) std::atomic<unsigned long> acknowledged{0};
};

struct Mailboxes {
  std::array<Mailbox, 2> of;
  std::atomic<bool> stop{false};
};

/// A program without a socket.
class RelayedSide {
 public:
  RelayedSide(Mailbox& mailbox, bool acknowledged)
      : mailbox_(mailbox), acknowledged_(acknowledged) {}
  void send_one() {
    mailbox_.sent.fetch_add(1, std::memory_order_release);
    ++sent_;
    if (!acknowledged_) return;
    while (mailbox_.acknowledged.load(std::memory_order_acquire) != sent_) sched_yield();
  }
  void receive_one() {
    ++received_;
    while (mailbox_.received.load(std::memory_order_acquire) != received_) sched_yield();
  }

 private:
  Mailbox& mailbox_;
  bool acknowledged_;
  unsigned long sent_ = 0, received_ = 0;
};

void relay(Side side, Mailbox& mailbox, bool acknowledges, const std::atomic<bool>& stop) {
  unsigned long sent = 0;
  while (!stop.load(std::memory_order_relaxed)) {
    if (mailbox.sent.load(std::memory_order_acquire) != sent) {
      side.send_one();
      ++sent;
    } else if (const Side::Came came = side.look(); came.is_acknowledgement) {
      mailbox.acknowledged.fetch_add(1, std::memory_order_release);
    } else if (came.any) {
      mailbox.received.fetch_add(1, std::memory_order_release);
      if (acknowledges) side.acknowledge();
    } else {
      sched_yield();
    }
  }
}

Mailboxes& share_mailboxes() {
  void* memory =
      mmap(nullptr, sizeof(Mailboxes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("mmap");
  return *new (memory) Mailboxes;
}

/// Ends this process if a child failed, since the other processes would wait for the child for
/// ever. The child has printed the error.
void end_if_a_child_failed(int) {
  const int saved = errno;
  int status;
  while (waitpid(-1, &status, WNOHANG) > 0) {
    if (status != 0) _exit(1);
  }
  errno = saved;
}

template <class Work>
pid_t start_process(Work work) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child != 0) return child;
  std::signal(SIGCHLD, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == parent) work();
  std::_Exit(0);
}

template <class OneSide>
void answer(OneSide side, unsigned long iterations) {
  for (unsigned long i = 0; i < iterations; ++i) {
    side.receive_one();
    side.send_one();
  }
}

template <class OneSide>
void ask(OneSide side, unsigned long iterations) {
  // half of each round-trip time, in microseconds, as ib_send_lat reports it
  std::vector<double> one_way;
  one_way.reserve(iterations);
  const auto start = std::chrono::steady_clock::now();
  auto before = start;
  for (unsigned long i = 0; i < iterations; ++i) {
    side.send_one();
    side.receive_one();
    const auto after = std::chrono::steady_clock::now();
    one_way.push_back(std::chrono::duration<double, std::micro>(after - before).count() / 2);
    before = after;
  }
  const std::chrono::duration<double, std::micro> taken = before - start;
  std::printf("%lu iters in %.2f seconds = %.2f usec/iter\n", iterations, taken.count() / 1e6,
              taken.count() / static_cast<double>(iterations));
  std::sort(one_way.begin(), one_way.end());
  std::printf("one way: %.2f usec typical, %.2f usec 99%%\n", one_way[one_way.size() / 2],
              one_way[one_way.size() * 99 / 100]);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc == 4 ? argv[1] : "";
  const size_t bytes = argc == 4 ? std::strtoul(argv[2], nullptr, 10) : 0;
  const unsigned long iterations = argc == 4 ? std::strtoul(argv[3], nullptr, 10) : 0;
  const bool acknowledged = mode == "acknowledged", relayed = mode == "relayed" || acknowledged;
  if ((mode != "blocking" && mode != "busy" && !relayed) || bytes == 0 || bytes > 65000 ||
      iterations == 0) {
    std::fprintf(stderr,
                 "usage: udp_pingpong blocking|busy|relayed|acknowledged BYTES ITERATIONS\n");
    return 2;
  }
  const bool busy = mode != "blocking";
  sockaddr_in server_address, client_address;
  const int server_socket = open_socket(server_address);
  const int client_socket = open_socket(client_address);
  const auto server_side = [&] { return Side(server_socket, client_address, busy, bytes); };
  const auto client_side = [&] { return Side(client_socket, server_address, busy, bytes); };

  struct sigaction on_death {};
  on_death.sa_handler = end_if_a_child_failed;
  on_death.sa_flags = SA_RESTART;
  sigaction(SIGCHLD, &on_death, nullptr);
  if (!relayed) {
    start_process([&] { answer(server_side(), iterations); });
    ask(client_side(), iterations);
  } else {
    Mailboxes& mailboxes = share_mailboxes();
    auto& [server, client] = mailboxes.of;
    start_process([&] { relay(server_side(), server, acknowledged, mailboxes.stop); });
    start_process([&] { relay(client_side(), client, acknowledged, mailboxes.stop); });
    const pid_t answering =
        start_process([&] { answer(RelayedSide(server, acknowledged), iterations); });
    ask(RelayedSide(client, acknowledged), iterations);
    // The server still waits for the acknowledgement of its last datagram, which the relays pass
    // on. If end_if_a_child_failed() has waited for it already, there is no such child.
    while (waitpid(answering, nullptr, 0) < 0 && errno == EINTR) {
    }
    mailboxes.stop.store(true, std::memory_order_relaxed);
  }
  while (wait(nullptr) > 0 || errno == EINTR) {
  }
  return 0;
}
