#include "emulator/daemon/run/worker.h"

#include <malloc.h>
#include <sched.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <thread>
#include <utility>

#include "emulator/daemon/base/start_error.h"
#include "emulator/daemon/client/idle_policy.h"
#include "emulator/os/processors.h"

namespace rocemu::daemon {
namespace {

using namespace std::chrono_literals;

/// The interval at which sockets are polled while doorbell rings keep the daemon busy. Polling is a
/// system call of 0.3 us.
constexpr engine::Duration kPollInterval = 10us;
/// The time for which the daemon polls the ring of an idle session while other sessions keep it
/// busy.
constexpr engine::Duration kSessionIdleTime = 1ms;
/// The time without a completion in a CQ after which no thread waits there for several, if others
/// keep the daemon busy or completions may arrive from a network. At most twice as long, since it
/// is checked at this interval.
constexpr engine::Duration kQuietTime = 250us;
/// The interval of checks for payload whose completions are not polled. At the second check, such
/// payload is written to memory, where the program may be polling for it. A program that waits for
/// completions wakes earlier.
constexpr engine::Duration kUntakenInterval = 1ms;
/// If the next deadline is sooner than this, the daemon yields instead of sleeping.
constexpr engine::Duration kMinSleep = 20us;
/// The number of destroyed objects after which memory is returned to the system. Returning takes
/// some milliseconds.
constexpr uint64_t kManyObjects = 1024;
constexpr engine::Duration kGiveBackInterval = 1s;
/// The interval at which memory is returned while very many objects are being destroyed. Returning
/// all of it at the end would delay other clients for too long.
constexpr engine::Duration kReleaseInterval = 20ms;
/// The time after which an operation that ran out of memory is tried again.
constexpr engine::Duration kPause = 10ms;

/// Requests short time slices, because Linux 6.12 and later run threads with short time slices
/// before those with long ones. Has no effect on other systems.
void ask_for_short_slices() {
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attributes{};
  constexpr uint64_t kSliceNs = 100'000;
  attributes.size = sizeof attributes;
  attributes.policy = SCHED_OTHER;
  attributes.nice = getpriority(PRIO_PROCESS, 0);
  attributes.runtime = kSliceNs;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

/// Returns the free memory of glibc's allocator to the system. musl's allocator keeps little.
void return_free_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace

Worker::Worker(const engine::FabricConfig& fabric, const Clock& clock, capture::PcapWriter* capture,
               const MakeRecording& make_recording, Files files)
    : clock_(clock),
      sessions_(clock, allowed_processors().size()),
      client_memory_(memory_, sessions_),
      recording_(make_recording ? make_recording(client_memory_) : nullptr),
      engine_host_(fabric, client_memory_, sessions_, cm_sessions_, clock, capture,
                   recording_.get()),
      files_(std::move(files)) {
  memory_watch_ = loop_.watch(memory_.returned_fd(), EPOLLIN, [this](uint32_t) {
    uint64_t count;
    [[maybe_unused]] const ssize_t size = read(memory_.returned_fd(), &count, sizeof count);
    engine_host_.submit(engine::MemoryReady{});
  });
  if (!memory_watch_) fail_start("cannot watch an eventfd", errno);
}

bool Worker::reap() {
  bool worked = sessions_.reap(engine_host_, memory_);
  worked |= cm_sessions_.reap(engine_host_);
  if (worked) somebody_left_ = true;
  return worked;
}

void Worker::run(const bool& stopping, bool busy_poll) {
  ask_for_short_slices();
  while (!stopping) {
    try {
      serve(stopping, busy_poll);
    } catch (const std::bad_alloc&) {
      // No request of a client caused this, because such a request ends its client instead. The
      // operation is tried again.
      spdlog::error("out of memory");
      return_free_memory();
      std::this_thread::sleep_for(kPause);
    }
  }
}

void Worker::serve(const bool& stopping, bool busy_poll) {
  IdlePolicy rest(clock_.now(), busy_poll);
  engine::Instant last_poll{}, ended_quiet{};
  while (!stopping) {
    sessions_.awake().set_processor(static_cast<uint32_t>(sched_getcpu()) + 1);
    bool worked = false;
    const engine::Instant began = clock_.now();
    if (began - last_poll >= kPollInterval) {
      worked |= poll(engine::Duration(0));
      sessions_.count_pollers(began);
      sessions_.awake().let_sleep(began, kSessionIdleTime);
      sessions_.silent().end_due(began);
      files_.check();
      write_untaken(began);
      if (began - ended_quiet >= kQuietTime) {
        engine_host_.delivery().watched_cqs().end_quiet();
        ended_quiet = began;
      }
      if (busy_poll && rest.is_idle(began)) {
        end_waits();
        do_before_sleep(began);
      }
      last_poll = began;
    }
    // Frames are received first, because they are older than any timer that has expired by now.
    // While the network is congested, no inputs are handled that would send frames.
    worked |= medium_ != nullptr && medium_->receive(began);
    if (medium_ == nullptr || !medium_->is_congested()) {
      worked |= sessions_.pump();
      worked |= finish_copies(began);
      worked |= engine_host_.tick_if_due(began);
    }
    if (medium_ != nullptr) worked |= medium_->flush(clock_.now());
    worked |= reap();
    const engine::Instant now = clock_.now();
    give_memory_back_in_parts(now);
    if (worked) {
      rest.worked(now);
      if (!rest.must_yield(now)) continue;
      if (sessions_.awake().recent(now).beside_gives_way) sched_yield();
      rest.gave_way(now, clock_.now());
      continue;
    }
    switch (rest.next(now, sessions_.awake().recent(now))) {
      case IdlePolicy::Way::kLookAgain:
        break;
      case IdlePolicy::Way::kGiveWay:
        sched_yield();
        rest.gave_way(now, clock_.now());
        break;
      case IdlePolicy::Way::kSleep:
        if (medium_ != nullptr && medium_->holds_back()) break;
        if (memory_.copies.awaits_any()) {  // a program finishes them without a signal
          sched_yield();
          break;
        }
        sleep(stopping);
        last_poll = clock_.now();
        sessions_.count_pollers(last_poll);
        rest.slept(last_poll);
    }
  }
}

void Worker::sleep(const bool& stopping) {
  const engine::Instant now = clock_.now();
  if (medium_ != nullptr && medium_->is_congested()) {
    poll(std::nullopt);  // for space to send
    return;
  }
  std::optional<engine::Instant> deadline = engine_host_.next_deadline();
  if (deadline && *deadline - now < kMinSleep) {
    sched_yield();
    return;
  }
  end_waits();
  sessions_.awake().let_sleep(now, engine::Duration(0));
  if (sessions_.awake().any()) return;  // a doorbell came just now
  std::optional<engine::Duration> longest = do_before_sleep(now);
  if (stopping) return;
  if (const auto end = sessions_.silent().next_end(); end && (!deadline || *end < *deadline)) {
    deadline = end;
  }
  if (deadline) {
    const engine::Duration left = std::max(*deadline - clock_.now(), engine::Duration(0));
    longest = longest ? std::min(*longest, left) : left;
  }
  if (memory_.is_any_untaken()) {
    longest = longest ? std::min(*longest, kUntakenInterval) : kUntakenInterval;
  }
  if (!engine_host_.delivery().watched_cqs().empty())
    longest = longest ? std::min(*longest, kQuietTime) : kQuietTime;
  poll(longest);
  write_untaken(clock_.now());
  sessions_.awake().wake_busy();
}

void Worker::end_waits() {
  if (medium_ == nullptr) engine_host_.delivery().watched_cqs().end_all();
}

bool Worker::finish_copies(engine::Instant now) {
  if (memory_.copies.empty() || !memory_.copies.update(now)) return false;
  engine_host_.submit(engine::MemoryReady{});
  return true;
}

void Worker::write_untaken(engine::Instant now) {
  if (!memory_.is_any_untaken() || now - looked_for_untaken_ < kUntakenInterval) return;
  looked_for_untaken_ = now;
  memory_.write_untaken();
}

std::optional<engine::Duration> Worker::do_before_sleep(engine::Instant now) {
  files_.flush();
  files_.check();
  return give_memory_back(now, !engine_host_.next_deadline());
}

std::optional<engine::Duration> Worker::give_memory_back(engine::Instant now, bool is_idle) {
  const uint64_t destroyed = sessions_.objects_destroyed();
  if (destroyed - destroyed_before_ < kManyObjects && !(somebody_left_ && is_idle)) {
    return std::nullopt;
  }
  if (now - gave_back_ < kGiveBackInterval) return kGiveBackInterval - (now - gave_back_);
  gave_back_ = now;
  if (is_idle) somebody_left_ = false;
  destroyed_before_ = destroyed;
  sessions_.shrink();
  return_free_memory();
  return std::nullopt;
}

void Worker::give_memory_back_in_parts(engine::Instant now) {
  const bool releasing = sessions_.is_releasing() || engine_host_.engine().is_releasing();
  const bool was_releasing = std::exchange(releasing_, releasing);
  if (releasing ? now - gave_back_ < kReleaseInterval : !was_releasing) return;
  return_free_memory();
  gave_back_ = clock_.now();
}

}  // namespace rocemu::daemon
