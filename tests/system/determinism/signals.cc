// Threads that start or end while their process gets signals. The kernel gives a signal for a
// process to any thread that does not block it, so a thread without a turn must not handle it.
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "programs.h"
#include "side.h"

namespace rocemu::determinism {
namespace {

thread_local char name_of_this_thread = 'M';
volatile sig_atomic_t handled_by = '-';

void note_thread(int) {
  handled_by = name_of_this_thread;
}

void handle(int signal) {
  struct sigaction action {};
  action.sa_handler = note_thread;
  sigaction(signal, &action, nullptr);
}

/// Returns whether the whole time has passed, without a signal handler.
bool sleep_undisturbed(long microseconds) {
  const timespec time{0, microseconds * 1000};
  return nanosleep(&time, nullptr) == 0;
}

}  // namespace

void signal_new_threads(uint32_t count) {
  handle(SIGUSR1);
  std::thread([&] {
    name_of_this_thread = 'A';
    for (uint32_t i = 0; i < count; ++i) {
      handled_by = '-';
      std::thread started([] {
        name_of_this_thread = 'B';
        sleep_undisturbed(1);
      });
      kill(getpid(), SIGUSR1);
      started.join();
      say(std::string("handled by ") + static_cast<char>(handled_by));
    }
  }).join();
}

void alarm_after_threads(uint32_t count) {
  handle(SIGALRM);
  for (uint32_t i = 0; i < count; ++i) {
    handled_by = '-';
    // The thread ends shortly before the signal arrives.
    const itimerval alarm{.it_interval = {}, .it_value = {0, 300}};
    setitimer(ITIMER_REAL, &alarm, nullptr);
    std::thread ending([] {
      name_of_this_thread = 'B';
      sleep_undisturbed(280);
    });
    const bool is_whole = sleep_undisturbed(1000);
    say(std::string(is_whole ? "not interrupted" : "interrupted") + ", handled by " +
        static_cast<char>(handled_by));
    ending.join();
  }
}

}  // namespace rocemu::determinism
