// Polls completion queues that stay empty, on one processor together with two threads that compute.
//   polls_that_sleep one|several|extended POLLS MOST_SLEEPS
// prints how many of the polls slept, and stops polling after more than MOST_SLEEPS.
//   polls_that_sleep lock TIMES
// polls under a spin lock until another thread has taken the lock TIMES times.
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(2);
}

template <class T>
T* check(T* object, const char* what) {
  if (object == nullptr) fail(what);
  return object;
}

/// Returns how often this thread gave up the processor by sleeping. Yields are not counted.
long sleeps() {
  rusage usage;
  if (getrusage(RUSAGE_THREAD, &usage) != 0) fail("getrusage");
  return usage.ru_nvcsw;
}

void stay_on_this_processor() {
  cpu_set_t processor;
  CPU_ZERO(&processor);
  CPU_SET(static_cast<unsigned>(sched_getcpu()), &processor);
  if (sched_setaffinity(0, sizeof processor, &processor) != 0) fail("sched_setaffinity");
}

/// Starts a thread that computes until the process ends.
void compute() {
  std::thread([] {
    for (volatile unsigned number = 0;;) number = number + 1;
  }).detach();
}

class Queues {
 public:
  Queues() {
    ibv_device** devices = check(ibv_get_device_list(nullptr), "ibv_get_device_list");
    context_ = check(ibv_open_device(check(devices[0], "no device")), "ibv_open_device");
    for (ibv_cq*& cq : cqs_) cq = check(ibv_create_cq(context_, 1, nullptr, nullptr, 0), "a CQ");
    ibv_cq_init_attr_ex attributes{};
    attributes.cqe = 1;
    extended_ = check(ibv_create_cq_ex(context_, &attributes), "ibv_create_cq_ex");
  }

  void poll(const std::string& how, long number) {
    ibv_wc wc;
    ibv_poll_cq_attr attributes{};
    if (how == "extended") {
      if (ibv_start_poll(extended_, &attributes) != ENOENT) fail("ibv_start_poll");
      return;
    }
    ibv_cq* cq = cqs_[how == "several" ? static_cast<size_t>(number) % cqs_.size() : 0];
    if (ibv_poll_cq(cq, 1, &wc) != 0) fail("ibv_poll_cq");
  }

 private:
  ibv_context* context_;
  std::array<ibv_cq*, 4> cqs_;
  ibv_cq_ex* extended_;
};

int count_sleeps(const std::string& how, long polls, long most_sleeps) {
  Queues queues;
  stay_on_this_processor();
  for (int i = 0; i < 2; ++i) compute();
  const long before = sleeps();
  for (long i = 0; i < polls; ++i) {
    queues.poll(how, i);
    if (i % 100 == 0 && sleeps() - before > most_sleeps) break;
  }
  std::printf("%ld sleeps\n", sleeps() - before);
  return 0;
}

int share_lock(long times) {
  Queues queues;
  pthread_spinlock_t lock;
  pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
  stay_on_this_processor();
  std::atomic<long> had{0};
  std::thread other([&] {
    while (had < times) {
      pthread_spin_lock(&lock);
      ++had;
      pthread_spin_unlock(&lock);
    }
  });
  for (long i = 0; had < times; ++i) {
    pthread_spin_lock(&lock);
    queues.poll("one", i);
    pthread_spin_unlock(&lock);
  }
  other.join();
  std::puts("both had the lock");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 2 && arguments[0] == "lock") return share_lock(std::stol(arguments[1]));
  if (arguments.size() != 3) return 2;
  const int status = count_sleeps(arguments[0], std::stol(arguments[1]), std::stol(arguments[2]));
  std::fflush(stdout);
  std::_Exit(status);  // runs no destructors, since other threads still compute
}
