// Two processes that throw a UDP datagram to and fro over loopback: the least that a network stack
// takes for what ibv_rc_pingpong and ib_send_lat do. udp_pingpong blocking|busy BYTES ITERATIONS
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

/// A socket on a port that the kernel chose.
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
  Side(int fd, const sockaddr_in& peer, bool busy, size_t bytes)
      : fd_(fd), busy_(busy), data_(bytes) {
    if (connect(fd, reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0) fail("connect");
    if (busy) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  }
  void send_one() {
    if (send(fd_, data_.data(), data_.size(), 0) < 0) fail("send");
  }
  void receive_one() {
    while (recv(fd_, data_.data(), data_.size(), 0) < 0) {
      if (!busy_ || errno != EAGAIN) fail("recv");
      sched_yield();
    }
  }

 private:
  int fd_;
  bool busy_;
  std::vector<char> data_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc == 4 ? argv[1] : "";
  const size_t bytes = argc == 4 ? std::strtoul(argv[2], nullptr, 10) : 0;
  const unsigned long iterations = argc == 4 ? std::strtoul(argv[3], nullptr, 10) : 0;
  if ((mode != "blocking" && mode != "busy") || bytes == 0 || bytes > 65000 || iterations == 0) {
    std::fprintf(stderr, "usage: udp_pingpong blocking|busy BYTES ITERATIONS\n");
    return 2;
  }
  sockaddr_in server_address, client_address;
  const int server_socket = open_socket(server_address);
  const int client_socket = open_socket(client_address);
  const pid_t server = fork();
  if (server < 0) fail("fork");
  if (server == 0) {
    Side side(server_socket, client_address, mode == "busy", bytes);
    for (unsigned long i = 0; i < iterations; ++i) {
      side.receive_one();
      side.send_one();
    }
    return 0;
  }
  Side side(client_socket, server_address, mode == "busy", bytes);
  std::vector<double> one_way;  // half of each round trip, in microseconds, as ib_send_lat counts
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
  waitpid(server, nullptr, 0);
  return 0;
}
