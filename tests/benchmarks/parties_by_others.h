// Threads of `parties` that do their work without a NIC. They show how the system's scheduler
// handles this number of threads.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "tests/benchmarks/parties_shared.h"

namespace rocemu::benchmarks {

/// Sends UDP datagrams over loopback. It polls its socket and yields when nothing has arrived, or
/// it blocks.
class UdpParty {
 public:
  struct Process {};

  UdpParty(How how, const Process&, const Place&) : socket_(socket(AF_INET, SOCK_DGRAM, 0)) {
    check(socket_ >= 0, "socket");
    if (how == How::kUdp) {
      check(fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) | O_NONBLOCK) == 0, "fcntl");
    }
    const sockaddr_in any = loopback(0);
    check(bind(socket_, reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0, "bind");
  }
  ~UdpParty() { close(socket_); }
  UdpParty(const UdpParty&) = delete;
  UdpParty& operator=(const UdpParty&) = delete;

  End end() const {
    sockaddr_in own{};
    socklen_t size = sizeof own;
    check(getsockname(socket_, reinterpret_cast<sockaddr*>(&own), &size) == 0, "getsockname");
    End end;
    end.udp_port = ntohs(own.sin_port);
    return end;
  }
  void connect(const End& peer) {
    const sockaddr_in there = loopback(peer.udp_port);
    check(::connect(socket_, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0,
          "connect");
  }
  void send(uint32_t number) {
    message_[0] = number;
    check(::send(socket_, message_.data(), sizeof message_, 0) == sizeof message_, "send");
  }
  uint32_t receive(uint32_t) {
    while (recv(socket_, message_.data(), sizeof message_, 0) < 0) {
      check(errno == EAGAIN, "recv");
      sched_yield();
    }
    return message_[0];
  }

 private:
  static sockaddr_in loopback(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
  }

  int socket_;
  std::array<uint32_t, kSize / sizeof(uint32_t)> message_{};
};

/// Reads memory in a loop, like ib_write_lat. Another process, which sleeps until it is woken,
/// delivers the messages, which is the minimum work of a daemon.
class RelayedParty {
 public:
  struct Process {};

  RelayedParty(How, const Process&, const Place& place)
      : mailbox_(place.shared.mailboxes[place.index][place.side]),
        relay_rung_(place.shared.relay_rung) {}

  static End end() { return {}; }
  void connect(const End&) {}
  void send(uint32_t number) {
    mailbox_.sent.store(number, std::memory_order_release);
    constexpr uint64_t kOne = 1;
    check(write(relay_rung_, &kOne, sizeof kOne) == sizeof kOne, "write");
  }
  uint32_t receive(uint32_t before) {
    for (;;) {
      const uint32_t number = mailbox_.received.load(std::memory_order_acquire);
      if (number != before) return number;
    }
  }

 private:
  Mailbox& mailbox_;
  int relay_rung_;
};

/// Runs the process that delivers the messages, until it is killed.
[[noreturn]] inline void relay(Shared& shared, size_t threads) {
  for (;;) {
    uint64_t rings;
    check(read(shared.relay_rung, &rings, sizeof rings) == sizeof rings, "read");
    for (size_t index = 0; index < threads; ++index) {
      for (size_t side = 0; side < 2; ++side) {
        const uint32_t number = shared.mailboxes[index][side].sent.load(std::memory_order_acquire);
        std::atomic<uint32_t>& to = shared.mailboxes[index][1 - side].received;
        if (to.load(std::memory_order_relaxed) != number) {
          to.store(number, std::memory_order_release);
        }
      }
    }
  }
}

}  // namespace rocemu::benchmarks
