#include "emulator/daemon/client/client_signals.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>

namespace rocemu::daemon {

void ClientSignals::begin(const State& state) {
  abi::DoorbellRing& ring = queues_.doorbells();
  ring.is_virtual.store(state.is_virtual ? 1 : 0, std::memory_order_relaxed);
  ring.has_exact_memory.store(state.has_exact_memory ? 1 : 0, std::memory_order_relaxed);
  ring.round.store(state.round, std::memory_order_relaxed);
  ring.asked_for.store(state.asked_for, std::memory_order_relaxed);
  ring.pollers_per_processor.store(state.pollers_per_processor, std::memory_order_relaxed);
  ring.device_time_ns.store(engine::nanoseconds_since_start(state.now), std::memory_order_relaxed);
  has_begun_ = true;
}

void ClientSignals::begin_round(uint32_t round, engine::Instant now) const {
  if (!has_begun_) return;
  abi::DoorbellRing& ring = queues_.doorbells();
  ring.device_time_ns.store(engine::nanoseconds_since_start(now), std::memory_order_relaxed);
  ring.round.store(round, std::memory_order_seq_cst);
  if (ring.waiting_for_round.load(std::memory_order_seq_cst) != 0)
    syscall(SYS_futex, &ring.round, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void ClientSignals::set_asked_for(uint32_t operations) const {
  if (has_begun_) queues_.doorbells().asked_for.store(operations, std::memory_order_relaxed);
}

void ClientSignals::set_pollers_per_processor(uint32_t pollers) const {
  if (!has_begun_) return;
  queues_.doorbells().pollers_per_processor.store(pollers, std::memory_order_relaxed);
}

void ClientSignals::set_daemon_sleeping(bool sleeping) const {
  if (has_begun_) queues_.set_daemon_sleeping(sleeping);
}

bool ClientSignals::has_doorbells() const {
  return has_begun_ && queues_.has_doorbells();
}

uint32_t ClientSignals::client_processor() const {
  return has_begun_ ? queues_.doorbells().client_processor.load(std::memory_order_relaxed) : 0;
}

uint32_t ClientSignals::threads_giving_way() const {
  constexpr uint32_t kMost = 512;
  if (!has_begun_) return 0;
  return std::min(queues_.doorbells().giving_way.load(std::memory_order_relaxed), kMost);
}

}  // namespace rocemu::daemon
