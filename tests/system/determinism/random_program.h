// A random program of several processes and threads, which a seed determines. It is a list of acts.
// Each thread does its part of each act, in the order of the list, and waits only for the other
// threads' parts of that act. So every program ends, for any order of its threads, and also if some
// acts are left out.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace rocemu::determinism {

enum class Kind : uint8_t {
  // Acts of two threads:
  kMessage,     // a message over a QP
  kPipe,        // a byte
  kEventFd,     // a number
  kSemaphore,   // a semaphore in memory that processes share
  kCondition,   // a condition variable in memory that processes share
  kSpin,        // spins on a flag in shared memory
  kSignal,      // sends the signal number of the receiving thread
  kConnection,  // an rdma_cm connection: connect, message, disconnect
  kGather,      // one loop waits for two other threads and a timer
  // Acts of one thread:
  kOneSided,  // RDMA WRITE or READ
  kMutex,     // locks its process's mutex for a while
  kSleep,
  kTimer,
  kYield,
  kObjects,  // creates and destroys some objects
  kEmptyPolls,
  kClock,
  kRandom,
  kCompute,
  kFork,  // forks a child, and waits for it
};
inline constexpr uint32_t kKinds = 20;

/// How a thread waits for completions.
enum class CqWait : uint8_t {
  kPoll,
  kPollAndYield,
  kPollAndSleep,
  kChannel,
  kChannelAndPoll,
  kChannelAndSelect,
  kChannelAndEpoll,
  kChannelWithTimeout,
};
inline constexpr uint32_t kCqWaits = 8;

struct Act {
  uint32_t number = 0;  // index in the complete list
  Kind kind = Kind::kYield;
  uint32_t from = 0, to = 0;  // the threads; equal in an act of one thread
  uint32_t third = 0;         // the third thread of kGather
  CqWait wait_of_from = CqWait::kPoll, wait_of_to = CqWait::kPoll;
  uint32_t count = 1;
  uint32_t time_us = 0;
  uint32_t variant = 0;
};

struct Thread {
  uint32_t process = 0;
  bool has_own_context = false;
  std::string device;
};

/// Messages from one thread to another, or one thread's RDMA accesses to the other's memory.
struct Link {
  uint32_t from = 0, to = 0;
};

struct RandomProgram {
  std::vector<Thread> threads;
  std::vector<Act> acts;

  bool is_in(const Act& act, uint32_t thread) const;
  /// Returns the links that the acts need, each once.
  std::vector<Link> links() const;
  std::string describe() const;
};

/// Returns the program that `seed` determines, without these acts.
RandomProgram make_program(uint64_t seed, const std::set<uint32_t>& without);

}  // namespace rocemu::determinism
