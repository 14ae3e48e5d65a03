// Threads that are canceled while they wait (pthreads(7), cancellation points).
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include <cstdio>

namespace {

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
sem_t semaphore;
int pipe_ends[2];

void unlock(void*) {
  pthread_mutex_unlock(&mutex);  // pthread_cond_wait() has locked the mutex again
}

void* wait_for_condition(void*) {
  pthread_mutex_lock(&mutex);
  pthread_cleanup_push(unlock, nullptr);
  for (;;) pthread_cond_wait(&condition, &mutex);
  pthread_cleanup_pop(1);
  return nullptr;
}
void* wait_for_semaphore(void*) {
  sem_wait(&semaphore);
  return nullptr;
}
void* wait_in_read(void*) {
  char byte;
  return read(pipe_ends[0], &byte, 1) < 0 ? nullptr : nullptr;
}
void* wait_in_poll(void*) {
  pollfd entry{pipe_ends[0], POLLIN, 0};
  poll(&entry, 1, -1);
  return nullptr;
}
void* wait_in_sleep(void*) {
  sleep(100'000);
  return nullptr;
}

}  // namespace

int main() {
  sem_init(&semaphore, 0, 0);
  if (pipe(pipe_ends) != 0) return 1;
  const struct {
    const char* name;
    void* (*wait)(void*);
  } waits[] = {{"condition", wait_for_condition},
               {"semaphore", wait_for_semaphore},
               {"read", wait_in_read},
               {"poll", wait_in_poll},
               {"sleep", wait_in_sleep}};
  for (const auto& one : waits) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, one.wait, nullptr) != 0) return 1;
    usleep(1000);
    pthread_cancel(thread);
    void* result = nullptr;
    pthread_join(thread, &result);
    std::printf("%s: %s\n", one.name, result == PTHREAD_CANCELED ? "canceled" : "not canceled");
  }
  const bool is_free = pthread_mutex_trylock(&mutex) == 0;
  std::printf("mutex: %s\n", is_free ? "free" : "taken");
}
