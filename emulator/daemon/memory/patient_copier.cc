#include "emulator/daemon/memory/patient_copier.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

namespace rocemu::daemon {
namespace {

using engine::MemoryResult;
using engine::RemoteRange;

}  // namespace

struct PatientCopier::Shared {
  Shared(MemoryReach own_reach, UniqueFd tell_returned)
      : reach(std::move(own_reach)), returned(std::move(tell_returned)) {}

  /// Runs the thread: executes calls until the PatientCopier is destroyed. The thread shares
  /// ownership of this object, since it can outlive all other users.
  void serve() {
    MemoryReach::Scratch scratch;
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return busy || abandoned; });
      if (!busy) return;
      lock.unlock();
      const MemoryResult outcome = call(scratch);
      lock.lock();
      result = outcome;
      busy = false;
      changed.notify_all();
      if (!std::exchange(late, false)) continue;
      const uint64_t one = 1;
      [[maybe_unused]] const ssize_t size = ::write(returned.get(), &one, sizeof one);
    }
  }

  MemoryResult call(MemoryReach::Scratch& scratch) {
    if (writes) {
      const std::array<std::span<const uint8_t>, 1> from{bytes};
      return reach.write(ranges, from, scratch);
    }
    const std::array<std::span<uint8_t>, 1> to{bytes};
    return reach.read(ranges, to, scratch);
  }

  const MemoryReach reach;
  const UniqueFd returned;
  std::mutex mutex;
  std::condition_variable changed;
  bool busy = false;       // the call below, which only the thread accesses in this time
  bool late = false;       // no caller waits for the call any more
  bool abandoned = false;  // there will be no further call
  bool writes = false;
  std::vector<RemoteRange> ranges;
  std::vector<uint8_t> bytes;
  MemoryResult result{};
};

std::unique_ptr<PatientCopier> PatientCopier::start(const MemoryReach& reach, int returned,
                                                    std::shared_ptr<WaitAllowance> allowance) {
  MemoryReach own = reach.duplicate();
  UniqueFd own_returned(fcntl(returned, F_DUPFD_CLOEXEC, 0));
  if (own.way() == MemoryReach::Way::kNone || !own_returned) return nullptr;
  sigset_t all, before;  // signals belong to the main thread
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::unique_ptr<PatientCopier> copier;
  try {
    auto shared = std::make_shared<Shared>(std::move(own), std::move(own_returned));
    copier.reset(new PatientCopier(shared, std::move(allowance)));
    std::thread([shared] { shared->serve(); }).detach();
  } catch (const std::system_error&) {
    copier.reset();
  } catch (const std::bad_alloc&) {
    copier.reset();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return copier;
}

PatientCopier::PatientCopier(std::shared_ptr<Shared> shared,
                             std::shared_ptr<WaitAllowance> allowance)
    : shared_(std::move(shared)), allowance_(std::move(allowance)) {}

PatientCopier::~PatientCopier() {
  const std::scoped_lock lock(shared_->mutex);
  shared_->abandoned = true;
  shared_->changed.notify_all();
}

bool PatientCopier::is_busy() const {
  const std::scoped_lock lock(shared_->mutex);
  return shared_->busy;
}

MemoryResult PatientCopier::run() {
  std::unique_lock lock(shared_->mutex);
  shared_->busy = true;
  shared_->changed.notify_all();
  const auto begin = WaitAllowance::Clock::now();
  const bool is_done =
      shared_->changed.wait_for(lock, allowance_->limit(begin), [&] { return !shared_->busy; });
  const auto end = WaitAllowance::Clock::now();
  allowance_->spend(end, end - begin);
  if (is_done) return shared_->result;
  shared_->late = true;
  return MemoryResult::kNotYet;
}

MemoryResult PatientCopier::read(std::span<const RemoteRange> from,
                                 std::span<const std::span<uint8_t>> to) {
  if (is_busy()) return MemoryResult::kNotYet;
  size_t length = 0;
  for (const auto part : to) length += part.size();
  shared_->writes = false;
  shared_->ranges.assign(from.begin(), from.end());
  shared_->bytes.resize(length);
  const MemoryResult result = run();
  if (result != MemoryResult::kDone) return result;
  const uint8_t* at = shared_->bytes.data();
  for (const auto part : to) {
    if (!part.empty()) std::memcpy(part.data(), at, part.size());
    at += part.size();
  }
  return result;
}

MemoryResult PatientCopier::write(std::span<const RemoteRange> to,
                                  std::span<const std::span<const uint8_t>> from) {
  if (is_busy()) return MemoryResult::kNotYet;
  shared_->writes = true;
  shared_->ranges.assign(to.begin(), to.end());
  shared_->bytes.clear();
  for (const auto part : from) {
    shared_->bytes.insert(shared_->bytes.end(), part.begin(), part.end());
  }
  return run();
}

}  // namespace rocemu::daemon
