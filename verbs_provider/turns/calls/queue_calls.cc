// Replaces the calls of POSIX and System V message queues and of System V semaphores: each attempt
// is the call that does not wait.
#include <cerrno>
#include <cstring>
#include <ctime>

#include <mqueue.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/syscall.h>

#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/system/kernel.h"
#include "verbs_provider/system/signal_restart.h"
#include "verbs_provider/turns/times.h"
#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {
namespace {

shim::Next<ssize_t(mqd_t, char*, size_t, unsigned*)> next_mq_receive("mq_receive");
shim::Next<int(mqd_t, const char*, size_t, unsigned)> next_mq_send("mq_send");
shim::Next<ssize_t(mqd_t, char*, size_t, unsigned*, const timespec*)> next_mq_timedreceive(
    "mq_timedreceive");
shim::Next<int(mqd_t, const char*, size_t, unsigned, const timespec*)> next_mq_timedsend(
    "mq_timedsend");
shim::Next<ssize_t(int, void*, size_t, long, int)> next_msgrcv("msgrcv");
shim::Next<int(int, const void*, size_t, int)> next_msgsnd("msgsnd");
shim::Next<int(int, sembuf*, size_t)> next_semop("semop");
shim::Next<int(int, sembuf*, size_t, const timespec*)> next_semtimedop("semtimedop");

enum class Signals : uint8_t { kRestart, kInterrupt };  // signal(7), with SA_RESTART

/// Repeats `look`, which returns the kernel's result, as long as the result is `-nothing`; this is
/// also the result when the time is over. Returns false if the daemon has ended. Sets errno on
/// failure.
template <class Look>
bool wait_while(int nothing, const Call& call, int64_t deadline, Signals signals, long* result,
                Look look) {
  for (;;) {
    const End end = wait(call, deadline, [&] {
      *result = look();
      return *result != -nothing;
    });
    if (end == End::kLeft) return false;
    if (end == End::kInterrupted) {
      if (signals == Signals::kRestart && deadline == abi::kNever && shim::restarts_after_signals())
        continue;
      *result = -EINTR;
    }
    break;
  }
  if (*result < 0) {
    errno = static_cast<int>(-*result);
    *result = -1;
  }
  return true;
}

/// A time that has passed on every clock.
constexpr timespec kOver{};

/// Returns the deadline for the time that a call got. A call whose time is a null pointer waits
/// forever (mq_overview(7)).
int64_t deadline_of_queue(const timespec* time) {
  return time == nullptr ? abi::kNever : deadline_at(CLOCK_REALTIME, *time);
}

/// Copies the operations to `looks` with IPC_NOWAIT set: semop(2) carries out all of them at once
/// or none. Returns false if an operation already has IPC_NOWAIT, or if there are too many.
constexpr size_t kMostOperations = 500;  // SEMOPM of Linux
bool make_looks(const sembuf* operations, size_t count, sembuf* looks) {
  if (count > kMostOperations) return false;
  for (size_t i = 0; i < count; ++i) {
    if ((operations[i].sem_flg & IPC_NOWAIT) != 0) return false;
    looks[i] = operations[i];
    looks[i].sem_flg = static_cast<short>(looks[i].sem_flg | IPC_NOWAIT);
  }
  return true;
}

}  // namespace
}  // namespace rocemu::turns

using namespace rocemu::turns;

ROCEMU_REPLACE(ssize_t, mq_timedreceive,
               (mqd_t queue, char* data, size_t size, unsigned* priority, const timespec* time)) {
  long result = 0;
  if ((time != nullptr && !is_valid(*time)) || !active() ||
      !wait_while(ETIMEDOUT, Call::of(SYS_mq_timedreceive, queue, data, size),
                  deadline_of_queue(time), Signals::kRestart, &result,
                  [&] { return kernel(SYS_mq_timedreceive, queue, data, size, priority, &kOver); }))
    return next_mq_timedreceive(queue, data, size, priority, time);
  return result;
}
ROCEMU_REPLACE(ssize_t, mq_receive, (mqd_t queue, char* data, size_t size, unsigned* priority)) {
  if (!active()) return next_mq_receive(queue, data, size, priority);
  return rocemu_shim_mq_timedreceive(queue, data, size, priority, nullptr);
}

ROCEMU_REPLACE(int, mq_timedsend,
               (mqd_t queue, const char* data, size_t size, unsigned priority,
                const timespec* time)) {
  long result = 0;
  if ((time != nullptr && !is_valid(*time)) || !active() ||
      !wait_while(ETIMEDOUT, Call::of(SYS_mq_timedsend, queue, data, size), deadline_of_queue(time),
                  Signals::kRestart, &result,
                  [&] { return kernel(SYS_mq_timedsend, queue, data, size, priority, &kOver); }))
    return next_mq_timedsend(queue, data, size, priority, time);
  return static_cast<int>(result);
}
ROCEMU_REPLACE(int, mq_send, (mqd_t queue, const char* data, size_t size, unsigned priority)) {
  if (!active()) return next_mq_send(queue, data, size, priority);
  return rocemu_shim_mq_timedsend(queue, data, size, priority, nullptr);
}

ROCEMU_REPLACE(ssize_t, msgrcv, (int queue, void* data, size_t size, long type, int flags)) {
  long result = 0;
  if ((flags & IPC_NOWAIT) != 0 || !active() ||
      !wait_while(ENOMSG, Call::of(SYS_msgrcv, queue, data, size), rocemu::abi::kNever,
                  Signals::kInterrupt, &result,
                  [&] { return kernel(SYS_msgrcv, queue, data, size, type, flags | IPC_NOWAIT); }))
    return next_msgrcv(queue, data, size, type, flags);
  return result;
}
ROCEMU_REPLACE(int, msgsnd, (int queue, const void* data, size_t size, int flags)) {
  long result = 0;
  if ((flags & IPC_NOWAIT) != 0 || !active() ||
      !wait_while(EAGAIN, Call::of(SYS_msgsnd, queue, data, size), rocemu::abi::kNever,
                  Signals::kInterrupt, &result,
                  [&] { return kernel(SYS_msgsnd, queue, data, size, flags | IPC_NOWAIT); }))
    return next_msgsnd(queue, data, size, flags);
  return static_cast<int>(result);
}

ROCEMU_REPLACE(int, semtimedop, (int id, sembuf* operations, size_t count, const timespec* time)) {
  sembuf looks[kMostOperations];
  long result = 0;
  if ((time != nullptr && !is_valid(*time)) || !active() || !make_looks(operations, count, looks) ||
      !wait_while(EAGAIN, Call::of(SYS_semtimedop, id, operations, count), deadline_of(time),
                  Signals::kInterrupt, &result,
                  [&] { return kernel(SYS_semtimedop, id, looks, count, nullptr); }))
    return next_semtimedop(id, operations, count, time);
  return static_cast<int>(result);
}
ROCEMU_REPLACE(int, semop, (int id, sembuf* operations, size_t count)) {
  if (!active()) return next_semop(id, operations, count);
  return rocemu_shim_semtimedop(id, operations, count, nullptr);
}
