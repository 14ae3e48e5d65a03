// Measures the maximum rate of the network stack with segmentation and reassembly (UDP_SEGMENT,
// UDP_GRO): one process sends UDP over loopback as fast as it can, and another one receives. With
// PIECES, it sends messages of that number of pieces. The first piece is longer than the others,
// like that of an RDMA WRITE, which has a RETH; each message then takes two datagrams. With
// `relayed`, the data of both processes is in the memory of another process, which they read and
// write like a daemon that accesses a program's memory. They do not process the data.
//   udp_stream [relayed] SEGMENT_BYTES SECONDS [PIECES]
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "tests/benchmarks/other_process.h"

namespace {

using rocemu::benchmarks::OtherProcess;

constexpr size_t kMaxDatagram = 65507;  // the largest UDP payload in IPv4
constexpr size_t kMaxSegments = 64;     // the most segments of a datagram, in older kernels
constexpr size_t kReth = 16;
constexpr size_t kBuffer = 1 << 16;
constexpr int kReceiveBuffer = 4 << 20;  // the system may allow less

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

void set_option(int fd, int level, int name, int value, const char* what) {
  if (setsockopt(fd, level, name, &value, sizeof value) != 0) fail(what);
}

/// The process whose data is relayed, or nullptr if the data is in this process.
using Owner = std::unique_ptr<OtherProcess>;

void take_from(const Owner& owner, std::vector<char>& data) {
  if (owner == nullptr) return;
  const iovec to{data.data(), data.size()}, from{owner->buffer(), data.size()};
  if (process_vm_readv(owner->pid(), &to, 1, &from, 1, 0) < 0) fail("process_vm_readv");
}

void give_to(const Owner& owner, std::vector<char>& data, size_t size) {
  if (owner == nullptr) return;
  const iovec from{data.data(), size}, to{owner->buffer(), size};
  if (process_vm_writev(owner->pid(), &from, 1, &to, 1, 0) < 0) fail("process_vm_writev");
}

/// Sends one datagram, which the system may divide into segments.
void send_one(int fd, const std::vector<char>& data, size_t segment) {
  iovec part{const_cast<char*>(data.data()), data.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(uint16_t))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = IPPROTO_UDP;
  header->cmsg_type = UDP_SEGMENT;
  header->cmsg_len = CMSG_LEN(sizeof(uint16_t));
  const auto size = static_cast<uint16_t>(segment);
  std::memcpy(CMSG_DATA(header), &size, sizeof size);
  if (sendmsg(fd, &message, 0) < 0 && errno != ENOBUFS) fail("sendmsg");
}

void send_until(int fd, size_t segment, const Owner& owner, Clock::time_point end) {
  const size_t segments = std::min(kMaxDatagram / segment, kMaxSegments);
  std::vector<char> data(segment * segments);
  while (Clock::now() < end) {
    take_from(owner, data);
    send_one(fd, data, segment);
  }
}

void send_writes_until(int fd, size_t segment, size_t pieces, const Owner& owner,
                       Clock::time_point end) {
  std::vector<char> head(segment + kReth + segment), rest(segment * (pieces - 2));
  while (Clock::now() < end) {
    take_from(owner, head);
    send_one(fd, head, segment + kReth);
    take_from(owner, rest);
    send_one(fd, rest, segment);
  }
}

/// Receives until nothing arrives any more, and prints the megabytes per second.
void receive(int fd, const Owner& owner) {
  std::vector<char> data(kBuffer);
  uint64_t bytes = 0;
  Clock::time_point first, last;
  for (;;) {
    const ssize_t got = recv(fd, data.data(), data.size(), 0);
    if (got < 0 && errno == EAGAIN) break;  // SO_RCVTIMEO
    if (got < 0) fail("recv");
    give_to(owner, data, static_cast<size_t>(got));
    last = Clock::now();
    if (bytes == 0) first = last;
    bytes += static_cast<uint64_t>(got);
  }
  const std::chrono::duration<double> taken = last - first;
  std::printf("%.0f MB/s\n", static_cast<double>(bytes) / 1e6 / taken.count());
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_relayed = argc > 1 && std::string_view(argv[1]) == "relayed";
  if (is_relayed) {
    --argc;
    ++argv;
  }
  const bool enough = argc == 3 || argc == 4;
  const size_t segment = enough ? std::strtoul(argv[1], nullptr, 10) : 0;
  const unsigned long seconds = enough ? std::strtoul(argv[2], nullptr, 10) : 0;
  const size_t pieces = argc == 4 ? std::strtoul(argv[3], nullptr, 10) : 0;
  const bool in_range = segment >= 1 && segment <= kMaxDatagram && seconds >= 1 &&
                        (argc != 4 || (pieces >= 3 && pieces - 2 <= kMaxSegments));
  const size_t longest =
      pieces == 0 ? segment : std::max(2 * segment + kReth, (pieces - 2) * segment);
  if (!in_range || longest > kMaxDatagram) {
    std::fprintf(stderr,
                 "usage: udp_stream [relayed] SEGMENT_BYTES SECONDS [PIECES]\n"
                 "PIECES: 3 to %zu, and no datagram longer than %zu bytes\n",
                 kMaxSegments + 2, kMaxDatagram);
    return 2;
  }
  const int receiver = socket(AF_INET, SOCK_DGRAM, 0);
  const int sender = socket(AF_INET, SOCK_DGRAM, 0);
  if (receiver < 0 || sender < 0) fail("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(receiver, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(receiver, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      connect(sender, reinterpret_cast<sockaddr*>(&address), size) != 0) {
    fail("bind and connect");
  }
  set_option(receiver, IPPROTO_UDP, UDP_GRO, 1, "UDP_GRO");
  set_option(receiver, SOL_SOCKET, SO_RCVBUF, kReceiveBuffer, "SO_RCVBUF");
  const timeval patience{.tv_sec = 0, .tv_usec = 500'000};
  if (setsockopt(receiver, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0) {
    fail("SO_RCVTIMEO");
  }
  const pid_t child = fork();
  if (child < 0) fail("fork");
  const Owner owner = is_relayed ? std::make_unique<OtherProcess>(kBuffer) : nullptr;
  if (child == 0) {
    const auto end = Clock::now() + std::chrono::seconds(seconds);
    pieces == 0 ? send_until(sender, segment, owner, end)
                : send_writes_until(sender, segment, pieces, owner, end);
    return 0;
  }
  receive(receiver, owner);
  waitpid(child, nullptr, 0);
  return 0;
}
