// Common parts of the programs of `parties`, for every kind of message transport.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace rocemu::benchmarks {

inline constexpr size_t kMaxThreads = 128;  // the sum over all pairs
inline constexpr size_t kMaxSamples = 1 << 16;
inline constexpr uint32_t kSize = 64;
inline constexpr uint32_t kLast = UINT32_MAX;  // the number of the last message

enum class How { kPoll, kSeveral, kMemory, kEvent, kUdp, kUdpBlocking, kRelay };

[[noreturn]] inline void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

inline void check(bool worked, const char* what) {
  if (!worked) fail(what);
}

/// The data that a thread sends to its counterpart. Which members are used depends on the message
/// transport.
struct End {
  uint32_t qp_num = 0;
  uint32_t rkey = 0;
  uint64_t address = 0;
  uint16_t udp_port = 0;
};

/// The mailbox of a thread without a NIC: the number of the latest message in each direction.
struct Mailbox {
  alignas(64) std::atomic<uint32_t> sent{0};
  alignas(64) std::atomic<uint32_t> received{0};
};

struct Shared {
  pthread_barrier_t barrier;
  int relay_rung = -1;  // an eventfd that wakes the relay
  std::array<std::array<End, 2>, kMaxThreads> ends;
  std::array<std::array<Mailbox, 2>, kMaxThreads> mailboxes;
  std::array<size_t, kMaxThreads> count;
  std::array<std::array<float, kMaxSamples>, kMaxThreads> one_way_us;
};

/// The position of a thread: its pair, and which of the two threads it is.
struct Place {
  Shared& shared;
  size_t index, side;
};

}  // namespace rocemu::benchmarks
