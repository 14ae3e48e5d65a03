// Reads the processor's cycle counter in the way that the first argument names. Apart from the
// counter, this program neither waits nor reads a clock.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#include <initializer_list>

namespace {

char** the_environment = nullptr;

/// Writes a line without the C library's buffers, since signal handlers call this, too.
void report(const char* name, unsigned long long value) {
  char line[64];
  const int size = snprintf(line, sizeof line, "%s %llu\n", name, value);
  if (write(STDOUT_FILENO, line, static_cast<size_t>(size)) != size) _exit(3);
}

// ---- Time ----

void an_hour() {
  unsigned processor = 7;
  const unsigned long long begin = __rdtsc(), begin_p = __rdtscp(&processor);
  sleep(3600);
  report("rdtsc", __rdtsc() - begin);
  report("rdtscp", __rdtscp(&processor) - begin_p);
  report("processor", processor);
}

/// Waits for `cycles` cycles, with nothing but the counter.
void spin(unsigned long long cycles) {
  const unsigned long long begin = __rdtsc();
  while (__rdtsc() - begin < cycles) {
  }
}

// ---- Programs that handle SIGSEGV ----

sigjmp_buf place;
volatile int faults = 0;

void fault() {
  *reinterpret_cast<volatile int*>(8) = 1;
}

void leave(int, siginfo_t* info, void*) {
  faults = faults + 1;
  spin(1000);
  if (info->si_code > 0 && info->si_addr == reinterpret_cast<void*>(8)) siglongjmp(place, 1);
}

__attribute__((noinline)) void fault_deep(int depth) {
  volatile char room[512];
  room[0] = static_cast<char>(depth);
  if (room[0] == 0) {
    fault();
  } else {
    fault_deep(depth - 1);
  }
  room[1] = room[0];
}

void handle(void (*handler)(int, siginfo_t*, void*), int flags) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  sigfillset(&action.sa_mask);
  sigaction(SIGSEGV, &action, nullptr);
}

void faults_that_are_left() {
  struct sigaction action {};
  sigaction(SIGSEGV, nullptr, &action);
  report("default", action.sa_handler == SIG_DFL);
  handle(leave, 0);
  sigaction(SIGSEGV, nullptr, &action);
  report("own", action.sa_sigaction == leave && (action.sa_flags & SA_SIGINFO) != 0);
  for (const int depth : {2, 30, 10}) {
    if (sigsetjmp(place, 1) == 0) fault_deep(depth);
    spin(1'000'000);
  }
  raise(SIGSEGV);
  report("faults", static_cast<unsigned long long>(faults));
}

void fault_again(int, siginfo_t*, void*) {
  spin(1000);
  report("handler", 1);
  fault();
}

void a_fault_in_a_handler() {
  handle(fault_again, 0);
  fault();
}

void a_fault_without_handler() {
  spin(1000);
  fault();
}

// ---- Masks ----

void note(int) {
  spin(1000);
  report("handler", 1);
}

void* with_all_blocked(void*) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  spin(1'000'000);
  return nullptr;
}

void* just_spin(void*) {
  spin(1'000'000);
  return nullptr;
}

void in_a_thread(void* (*run)(void*), const pthread_attr_t* attributes) {
  pthread_t thread;
  pthread_create(&thread, attributes, run, nullptr);
  pthread_join(thread, nullptr);
}

void blocked_signals() {
  in_a_thread(with_all_blocked, nullptr);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  sigset_t all;
  sigfillset(&all);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 32)
  pthread_attr_setsigmask_np(&attributes, &all);
#endif
  in_a_thread(just_spin, &attributes);
  pthread_attr_destroy(&attributes);
  struct sigaction action {};
  action.sa_handler = note;
  sigfillset(&action.sa_mask);
  sigaction(SIGALRM, &action, nullptr);
  alarm(1);
  sigset_t others = all;
  sigdelset(&others, SIGALRM);
  sigsuspend(&others);
  report("end", 1);
}

// ---- Executing other programs ----

void await(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  report("status", static_cast<unsigned long long>(status));
}

template <class Execute>
void in_a_child(Execute execute) {
  const pid_t child = fork();
  if (child == 0) {
    spin(1000);
    execute();
    spin(1000);
    _exit(9);
  }
  await(child);
}

/// Executes `other`, a program that reads the counter and may be statically linked, by each
/// function that can do so.
void executions(const char* other) {
  char name[] = "other", argument[] = "spin";
  char* arguments[] = {name, argument, nullptr};
  in_a_child([&] { execl(other, name, argument, nullptr); });
  in_a_child([&] { execlp(other, name, argument, nullptr); });
  in_a_child([&] { execle(other, name, argument, nullptr, the_environment); });
  in_a_child([&] { execv(other, arguments); });
  in_a_child([&] { execvp(other, arguments); });
  in_a_child([&] { execve(other, arguments, the_environment); });
  in_a_child([&] { execl("/nonexistent", name, nullptr); });
  pid_t child = 0;
  posix_spawn(&child, other, nullptr, nullptr, arguments, the_environment);
  await(child);
  char command[4096];
  snprintf(command, sizeof command, "exec %s spin", other);
  report("system", static_cast<unsigned long long>(system(command)));
  FILE* const output = popen(command, "r");
  report("popen", static_cast<unsigned long long>(pclose(output)));
  spin(1000);
}

/// Prints whether this machine supports virtual time for the counter. This is for a run without
/// rocemu.
void whether_reads_fault() {
  signal(SIGSEGV, [](int) {
    report("reads_fault", 1);
    _exit(0);
  });
  prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
  __rdtsc();
  prctl(PR_SET_TSC, PR_TSC_ENABLE);
  report("reads_fault", 0);
}

}  // namespace

#ifdef LIKE_GO
// The bytes with which Go's linker marks the data of a program.
__attribute__((used, section(".data"), aligned(16))) char build_information[] = "\xff Go buildinf:";
#endif

int main(int count, char** arguments, char** environment) {
  the_environment = environment;
  const char* const way = count > 1 ? arguments[1] : "";
  if (strcmp(way, "reads-fault") == 0) whether_reads_fault();
  if (strcmp(way, "hour") == 0) an_hour();
  if (strcmp(way, "spin") == 0) spin(1'000'000);
  if (strcmp(way, "spin-minute") == 0) spin(60'000'000'000);
  if (strcmp(way, "read") == 0) report("grows", __rdtsc() <= __rdtsc());
  if (strcmp(way, "faults") == 0) faults_that_are_left();
  if (strcmp(way, "nested") == 0) a_fault_in_a_handler();
  if (strcmp(way, "unhandled") == 0) a_fault_without_handler();
  if (strcmp(way, "masks") == 0) blocked_signals();
  if (strcmp(way, "execute") == 0) executions(arguments[2]);
  return 0;
}
