// futex(2): runtimes of other languages, and std::atomic's wait(), build their locks on futexes.
#include "verbs_provider/turns/futex.h"

#include <cerrno>
#include <cstdint>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>

#include "verbs_provider/system/kernel.h"
#include "verbs_provider/turns/gifts.h"
#include "verbs_provider/turns/preemption_points.h"
#include "verbs_provider/turns/times.h"
#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {
namespace {

/// Waits while the word has the expected value. Returns 0 or a negative errno value, or 1 if the
/// daemon has ended.
long wait_in_futex(uint32_t* word, uint32_t expected, int64_t deadline) {
  const auto value = [word] { return __atomic_load_n(word, __ATOMIC_SEQ_CST); };
  if (value() != expected) return -EAGAIN;
  const auto key = reinterpret_cast<uint64_t>(word);
  expect_gift(key);
  // A process that is not in the run may have changed the word. futex(2) permits a wait to end
  // without a wake-up.
  const End end = wait(Call::of(SYS_futex, word, FUTEX_WAIT), deadline,
                       [&] { return has_gift() || value() != expected; });
  end_expecting(end == End::kInterrupted || end == End::kDeadline);
  switch (end) {
    case End::kReady:
      return 0;
    case End::kDeadline:
      return -ETIMEDOUT;
    case End::kInterrupted:
      return -EINTR;
    case End::kLeft:
      break;
  }
  return 1;
}

}  // namespace

long do_futex(const long (&arguments)[6]) {
  auto* const word = reinterpret_cast<uint32_t*>(arguments[0]);
  const auto operation = static_cast<int>(arguments[1]);
  const auto value = static_cast<uint32_t>(arguments[2]);
  const auto* time = reinterpret_cast<const timespec*>(arguments[3]);
  const int command = operation & FUTEX_CMD_MASK;
  const auto straight = [&] {
    return kernel_words(SYS_futex, arguments[0], arguments[1], arguments[2], arguments[3],
                        arguments[4], arguments[5]);
  };
  switch (command) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET: {
      if ((reinterpret_cast<uintptr_t>(word) & 3) != 0 || !active() ||
          (time != nullptr && !is_valid(*time)))
        return straight();
      int64_t deadline = abi::kNever;
      if (time != nullptr) {
        const clockid_t clock =
            (operation & FUTEX_CLOCK_REALTIME) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
        deadline = command == FUTEX_WAIT ? deadline_of(time) : deadline_at(clock, *time);
      }
      const long result = wait_in_futex(word, value, deadline);
      if (result > 0) return straight();
      pass_preemption_point("futex");
      return result;
    }
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET: {
      uint32_t given = 0;
      if (own_slot() != nullptr && joined())
        given = give_gifts(reinterpret_cast<uint64_t>(word), value);
      long woken = given;
      if (given < value) {
        woken = kernel(SYS_futex, word, operation, static_cast<long>(value - given), nullptr,
                       nullptr, arguments[5]);
        if (woken >= 0) woken += given;
      }
      pass_preemption_point("futex");
      return woken;
    }
    default:
      return straight();
  }
}

}  // namespace rocemu::turns
