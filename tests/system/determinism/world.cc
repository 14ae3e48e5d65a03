#include "tests/system/determinism/world.h"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

namespace rocemu::determinism {
namespace {

SharedMemory* make_shared_memory(unsigned threads) {
  void* at = mmap(nullptr, sizeof(SharedMemory), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                  -1, 0);
  if (at == MAP_FAILED) fail("mmap");
  auto* memory = new (at) SharedMemory();
  pthread_mutexattr_t mutex;
  pthread_mutexattr_init(&mutex);
  pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
  pthread_condattr_t condition;
  pthread_condattr_init(&condition);
  pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
  pthread_barrierattr_t barrier;
  pthread_barrierattr_init(&barrier);
  pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
  for (SharedMemory::OfAct& act : memory->acts) {
    sem_init(&act.semaphore, 1, 0);
    pthread_mutex_init(&act.mutex, &mutex);
    pthread_cond_init(&act.changed, &condition);
  }
  if (threads > 0) pthread_barrier_init(&memory->all_threads, &barrier, threads);
  return memory;
}

Plumbing make_plumbing(const Act& act) {
  Plumbing plumbing;
  if (act.kind == Kind::kEventFd) plumbing.event_fd = eventfd(0, EFD_SEMAPHORE);
  if (act.kind == Kind::kPipe || act.kind == Kind::kGather || act.kind == Kind::kConnection) {
    int ends[2];
    if (pipe(ends) != 0) fail("pipe");
    plumbing.read_end = ends[0];
    plumbing.write_end = ends[1];
  }
  return plumbing;
}

}  // namespace

World::World(const RandomProgram& a_program)
    : program(a_program), links(a_program.links()), plumbing(kMostActsOfAll) {
  link_sockets = std::vector<SocketPair>(links.size());
  for (const Act& act : program.acts) plumbing[act.number] = make_plumbing(act);
  memory = make_shared_memory(static_cast<unsigned>(used_threads(program).size()));
}

std::vector<uint32_t> used_threads(const RandomProgram& program) {
  std::vector<uint32_t> used;
  for (uint32_t thread = 0; thread < program.threads.size(); ++thread) {
    if (std::ranges::any_of(program.acts,
                            [&](const Act& act) { return program.is_in(act, thread); }))
      used.push_back(thread);
  }
  return used;
}

}  // namespace rocemu::determinism
