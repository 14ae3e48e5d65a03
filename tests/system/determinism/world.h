// The state that the threads of a random program share. It is made before the first process is
// forked.
#pragma once

#include <pthread.h>
#include <semaphore.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "tests/system/determinism/random_program.h"
#include "tests/system/determinism/side.h"

namespace rocemu::determinism {

inline constexpr uint32_t kMostThreadsOfAll = 16;
inline constexpr uint32_t kMostActsOfAll = 32;

/// The memory that all processes map.
struct SharedMemory {
  struct OfAct {
    sem_t semaphore;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_set;
    std::atomic<uint32_t> flag;
  };
  std::array<OfAct, kMostActsOfAll> acts;
  std::array<std::atomic<pid_t>, kMostThreadsOfAll> pids, tids;
  pthread_barrier_t all_threads;
};

/// The descriptors that an act needs; -1 for those that it does not need.
struct Plumbing {
  int read_end = -1, write_end = -1;
  int event_fd = -1;
};

struct World {
  explicit World(const RandomProgram& a_program);

  const RandomProgram& program;
  const std::vector<Link> links;
  std::vector<SocketPair> link_sockets;
  std::vector<Plumbing> plumbing;  // the index is the number of the act
  SharedMemory* memory = nullptr;
};

/// The state of one process.
struct ProcessState {
  Device* device = nullptr;  // the device for threads without a separate context
  std::mutex mutex;
  uint32_t times_locked = 0;
};

/// Returns the threads that at least one act needs.
std::vector<uint32_t> used_threads(const RandomProgram& program);

}  // namespace rocemu::determinism
