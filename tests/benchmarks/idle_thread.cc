// A library for LD_PRELOAD. It gives a program with one thread a second thread, which sleeps until
// the end; nearly every program has such a thread. scripts/bench measures perftest with and without
// it.
#include <pthread.h>
#include <unistd.h>

#include <csignal>

namespace {

void* sleep_for_ever(void*) {
  for (;;) pause();
}

/// The thread blocks all signals, so that the kernel delivers them to the program's own thread.
[[gnu::constructor]] void start_thread() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, sleep_for_ever, nullptr) == 0) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
