// Ways to wait for a time by system calls without a C function, in loops, by queues and semaphores,
// and for other threads and processes.
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <spawn.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/wait.h>

#include <cerrno>
#include <string>
#include <thread>

#include "timed_waits.h"

namespace rocemu::timed_waits {
namespace {

// ---- System calls ----

void by_nanosleep_call() {
  require(syscall(SYS_nanosleep, &kTime, nullptr) == 0, "nanosleep");
}
void by_clock_nanosleep_call() {
  const timespec until = later(CLOCK_MONOTONIC), wrong{0, -1};
  require(
      syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &wrong, nullptr) == -1 && errno == EINVAL,
      "clock_nanosleep with a wrong time");
  require(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == 0,
          "clock_nanosleep");
}
void by_ppoll_call() {
  timespec time = kTime;  // the system call ppoll(2) may change the time
  pollfd entry{silent_pipe(), POLLIN, 0};
  require(syscall(SYS_ppoll, &entry, 1, &time, nullptr, 8) == 0, "ppoll");
}
void by_pselect_call() {
  timespec time = kTime;
  fd_set set;
  FD_ZERO(&set);
  FD_SET(silent_pipe(), &set);
  require(syscall(SYS_pselect6, silent_pipe() + 1, &set, nullptr, nullptr, &time, nullptr) == 0,
          "pselect6");
}
void by_epoll_pwait_call() {
  epoll_event event{};
  require(syscall(SYS_epoll_pwait, silent_epoll(), &event, 1, kMilliseconds, nullptr, 8) == 0,
          "epoll_pwait");
}

// ---- Loops ----

void by_loop(double (*clock)()) {
  for (const double end = clock() + kSeconds; clock() < end;) {
  }
}
void by_loop_of_clock() {
  by_loop([] { return seconds_of(CLOCK_MONOTONIC); });
}
void by_loop_of_system_call() {
  by_loop(seconds_of_system_call);
}

// ---- Queues and semaphores ----

/// Creates an empty queue with room for one message, which no other process uses.
mqd_t own_queue() {
  const std::string name = "/rocemu-timed-waits-" + std::to_string(getpid());
  mq_attr attributes{};
  attributes.mq_maxmsg = 1;
  attributes.mq_msgsize = 1;
  const mqd_t queue = mq_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600, &attributes);
  require(queue >= 0, "mq_open");
  require(mq_unlink(name.c_str()) == 0, "mq_unlink");
  return queue;
}
void by_mq_timedreceive() {
  const timespec until = later(CLOCK_REALTIME);
  char byte = 0;
  require(mq_timedreceive(own_queue(), &byte, 1, nullptr, &until) < 0 && errno == ETIMEDOUT,
          "mq_timedreceive");
}
void by_mq_timedsend() {
  const timespec until = later(CLOCK_REALTIME);
  const mqd_t queue = own_queue();
  require(mq_send(queue, "", 1, 0) == 0, "mq_send");
  require(mq_timedsend(queue, "", 1, 0, &until) < 0 && errno == ETIMEDOUT, "mq_timedsend");
}
void by_semtimedop() {
  const int id = semget(IPC_PRIVATE, 1, 0600);
  sembuf take{0, -1, 0};
  require(semtimedop(id, &take, 1, &kTime) < 0 && errno == EAGAIN, "semtimedop");
  semctl(id, 0, IPC_RMID);
}

// ---- Other threads and processes ----

void by_join() {
  std::thread([] { sleep(kSeconds); }).join();
}

/// Runs `act` in a child, after the time has passed.
template <class Act>
pid_t later_in_child(Act act) {
  const pid_t child = fork();
  if (child != 0) return child;
  sleep(kSeconds);
  act();
  _exit(0);
}
void await(pid_t child) {
  int status = -1;
  require(waitpid(child, &status, 0) == child && status == 0, "waitpid");
}
void by_waitpid() {
  await(later_in_child([] {}));
}
void by_wait4_call() {
  const pid_t child = later_in_child([] {});
  require(syscall(SYS_wait4, child, nullptr, 0, nullptr) == child, "wait4");
}
void by_mq_receive() {
  const mqd_t queue = own_queue();
  const pid_t child = later_in_child([&] { mq_send(queue, "x", 1, 0); });
  char byte = 0;
  require(mq_receive(queue, &byte, 1, nullptr) == 1 && byte == 'x', "mq_receive");
  await(child);
}
void by_msgrcv() {
  struct {
    long type;
    char byte;
  } message{1, 'x'};
  const int queue = msgget(IPC_PRIVATE, 0600);
  const pid_t child = later_in_child([&] { msgsnd(queue, &message, 1, 0); });
  message.byte = 0;
  require(msgrcv(queue, &message, 1, 0, 0) == 1 && message.byte == 'x', "msgrcv");
  await(child);
  msgctl(queue, IPC_RMID, nullptr);
}
void by_semop() {
  const int id = semget(IPC_PRIVATE, 1, 0600);
  const pid_t child = later_in_child([&] {
    sembuf add{0, 1, 0};
    semop(id, &add, 1);
  });
  sembuf take{0, -1, 0};
  require(semop(id, &take, 1) == 0, "semop");
  await(child);
  semctl(id, 0, IPC_RMID);
}
void by_posix_spawn() {
  char name[] = "sleep", seconds[] = "1000";
  char* arguments[] = {name, seconds, nullptr};
  pid_t child = 0;
  require(posix_spawnp(&child, "sleep", nullptr, nullptr, arguments, environ) == 0, "posix_spawnp");
  await(child);
}
void by_system() {
  require(system("sleep 1000") == 0, "system");
}
void by_popen() {
  FILE* const output = popen("sleep 1000; echo x", "r");
  require(fgetc(output) == 'x', "fgetc");
  require(pclose(output) == 0, "pclose");
}

constexpr Way kOtherWays[] = {
    {"syscall(SYS_nanosleep)", by_nanosleep_call},
    {"syscall(SYS_clock_nanosleep)", by_clock_nanosleep_call},
    {"syscall(SYS_ppoll)", by_ppoll_call},
    {"syscall(SYS_pselect6)", by_pselect_call},
    {"syscall(SYS_epoll_pwait)", by_epoll_pwait_call},
    {"syscall(SYS_wait4)", by_wait4_call},
    {"loop of clock_gettime", by_loop_of_clock},
    {"loop of syscall(SYS_clock_gettime)", by_loop_of_system_call},
    {"mq_timedreceive", by_mq_timedreceive},
    {"mq_timedsend", by_mq_timedsend},
    {"mq_receive", by_mq_receive},
    {"msgrcv", by_msgrcv},
    {"semop", by_semop},
    {"semtimedop", by_semtimedop},
    {"join", by_join},
    {"waitpid", by_waitpid},
    {"posix_spawnp", by_posix_spawn},
    {"system", by_system},
    {"popen and fgetc", by_popen},
};

}  // namespace

std::span<const Way> other_ways() {
  return kOtherWays;
}

}  // namespace rocemu::timed_waits
