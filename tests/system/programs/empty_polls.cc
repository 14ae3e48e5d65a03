// Polls an empty completion queue and ends by itself. Prints how long that took, by the program's
// clock.
//
// usage: empty_polls WAY COUNT
//   alarm     with a watchdog of 20 s
//   lease     beside a thread that sleeps for an hour
//   lock      two threads, each COUNT times under one spin lock
//   for-ever  does not end
#include <infiniband/verbs.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>

namespace {

ibv_cq* cq;
pthread_spinlock_t spin_lock;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void poll(long times) {
  ibv_wc wc;
  for (long i = 0; i < times; ++i)
    if (ibv_poll_cq(cq, 1, &wc) != 0) fail("a completion");
}

void poll_under_lock(long times) {
  for (long i = 0; i < times; ++i) {
    pthread_spin_lock(&spin_lock);
    poll(1);
    pthread_spin_unlock(&spin_lock);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string way = argv[1];
  const long count = std::atol(argv[2]);
  ibv_device** const list = ibv_get_device_list(nullptr);
  ibv_context* const context =
      list != nullptr && list[0] != nullptr ? ibv_open_device(list[0]) : nullptr;
  cq = context != nullptr ? ibv_create_cq(context, 1, nullptr, nullptr, 0) : nullptr;
  if (cq == nullptr) fail("ibv_create_cq");
  pthread_spin_init(&spin_lock, PTHREAD_PROCESS_PRIVATE);
  if (way == "alarm") alarm(20);
  if (way == "lease") {
    std::thread([] {
      sleep(3600);
      std::puts("the lease is over");
      std::fflush(stdout);
    }).detach();
  }
  const double start = now();
  if (way == "lock") {
    std::thread other(poll_under_lock, count);
    poll_under_lock(count);
    other.join();
  } else {
    do poll(count);
    while (way == "for-ever");
  }
  std::printf("%ld polls took %.9f s\n", count, now() - start);
  std::fflush(stdout);
  _exit(0);
}
