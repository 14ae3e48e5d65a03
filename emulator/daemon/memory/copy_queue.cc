#include "emulator/daemon/memory/copy_queue.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "emulator/os/proc.h"

namespace rocemu::daemon {
namespace {

using namespace std::chrono_literals;
using abi::CopyJobs;
using engine::CopyProgress;

/// The time in which a thread that polls takes a job. Yielding takes it a few switches.
constexpr engine::Duration kTakeTime = 50us;
/// The time after which the thread that copies is examined. It may be stopped, or have left the
/// function from a signal handler.
constexpr engine::Duration kStuckTime = 20ms;
/// The numbers of copies for which a client is not asked after it took no job: twice as many each
/// time.
constexpr uint32_t kLeastPassedOver = 32, kMostPassedOver = 1024;
/// If a thread has run in user mode for this number of clock ticks (sysconf(_SC_CLK_TCK)), its
/// system call has returned.
constexpr uint64_t kTicksOutside = 2;
/// The time for which end() yields before it sleeps.
constexpr auto kYieldTime = 1ms;
/// The longest wait of end(). Even on a busy machine a thread in a system call gets a processor
/// sooner. A client that takes longer pretends to copy, and is not asked again.
constexpr auto kLongestWait = 100ms;

/// The number of copies under way with which no others are begun, so that the engine begins several
/// at a time.
constexpr size_t kEnoughUnderWay = 4;

bool is_before(uint16_t a, uint16_t b) {
  return static_cast<int16_t>(a - b) < 0;
}

uint16_t next(uint16_t number) {
  return static_cast<uint16_t>(number + 1);
}

uint64_t fill(std::span<const engine::RemoteRange> ranges, CopyJobs::Range* to) {
  uint64_t length = 0;
  for (const engine::RemoteRange& range : ranges) {
    *to++ = {range.address, range.length};
    length += range.length;
  }
  return length;
}

}  // namespace

bool CopyQueue::may_begin() {
  if (!may_ask_ || ring_.takes_payload.load(std::memory_order_relaxed) == 0) return false;
  if (under_way_ > kEnoughUnderWay) return false;
  // A thread that comes back to a job after the daemon has given up on it would make the job that
  // is there now.
  if (gave_up_ != jobs_.returned.load(std::memory_order_acquire)) return false;
  if (passed_over_ == pass_over_) return true;
  ++passed_over_;
  return false;
}

CopyJobs::State CopyQueue::load() const {
  return CopyJobs::unpack(jobs_.state.load(std::memory_order_acquire));
}

template <class Change>
CopyJobs::State CopyQueue::change(Change change) {
  uint64_t word = jobs_.state.load(std::memory_order_acquire);
  while (true) {
    CopyJobs::State state = CopyJobs::unpack(word);
    change(state);
    if (jobs_.state.compare_exchange_weak(word, CopyJobs::pack(state), std::memory_order_seq_cst)) {
      return state;
    }
  }
}

bool CopyQueue::begin(const engine::DirectCopy& copy, const CopyQueue& peer) {
  if (copies_.size() >= CopyJobs::kCount || copy.source.size() > CopyJobs::kMaxRanges ||
      copy.target.size() > CopyJobs::kMaxRanges) {
    return false;
  }
  // If a job has just failed, this one would not be made before update() has noted that.
  const CopyJobs::State state = load();
  if (state.has_failed()) return false;
  const bool is_read = copy.maker == copy.to;
  const auto here = is_read ? copy.target : copy.source;
  const auto there = is_read ? copy.source : copy.target;
  CopyJobs::Job& job = jobs_.jobs[state.offered % CopyJobs::kCount];
  job.length = fill(here, job.here);
  fill(there, job.there);
  job.pid = peer.pid_;
  job.is_read = is_read ? 1 : 0;
  job.count_here = static_cast<uint32_t>(here.size());
  job.count_there = static_cast<uint32_t>(there.size());
  job.thread.store(0, std::memory_order_relaxed);
  job.mark = ++marks_;
  const std::atomic<uint64_t>* mark = nullptr;
  const uint64_t own_address = jobs_.address.load(std::memory_order_acquire);
  const uint64_t peer_address = peer.jobs_.address.load(std::memory_order_acquire);
  if (!is_read && own_address != 0 && peer_address != 0) {
    const uint32_t place = copy.maker.value % CopyJobs::kMarks;
    mark = &peer.jobs_.marks[place];
    job.here[job.count_here++] = {own_address + offset_in_jobs(&job.mark), sizeof job.mark};
    job.there[job.count_there++] = {peer_address + peer.offset_in_jobs(mark), sizeof job.mark};
    job.length += sizeof job.mark;
  }
  copies_.push_back({copy.key, is_read ? copy.from : copy.to, state.offered, mark});
  ++under_way_;
  change([](CopyJobs::State& now) { now.offered = next(now.offered); });
  return true;
}

CopyProgress CopyQueue::progress(const engine::CopyKey& key) const {
  const auto copy = std::ranges::find(copies_, key, &Copy::key);
  return copy != copies_.end() ? copy->progress : CopyProgress::kNone;
}

void CopyQueue::forget(const engine::CopyKey& key) {
  std::erase_if(copies_, [&](const Copy& copy) {
    return copy.key == key && copy.progress != CopyProgress::kUnderWay;
  });
}

void CopyQueue::forget(engine::QpNumber qp) {
  std::erase_if(copies_, [&](const Copy& copy) {
    return copy.key.qp == qp && copy.progress != CopyProgress::kUnderWay;
  });
}

bool CopyQueue::has_peer(engine::ClientId client) const {
  return std::ranges::any_of(copies_, [&](const Copy& copy) { return copy.peer == client; });
}

/// Notes the copies that have ended according to the state.
void CopyQueue::note_ended(CopyJobs::State state) {
  for (Copy& copy : copies_) {
    if (copy.progress != CopyProgress::kUnderWay) continue;
    const bool is_latest = next(copy.number) == state.finished;
    if (is_before(copy.number, state.finished)) {
      const bool has_failed = is_latest && state.has_failed();
      copy.progress = has_failed ? CopyProgress::kFailed : CopyProgress::kDone;
      if (!has_failed) pass_over_ = passed_over_ = 0;
    } else if (!is_before(copy.number, state.offered)) {
      copy.progress = CopyProgress::kFailed;  // taken back
    } else {
      continue;
    }
    --under_way_;
  }
}

void CopyQueue::take_back() {
  note_ended(change([](CopyJobs::State& state) { state.offered = state.taken; }));
  pass_over_ = std::clamp(2 * pass_over_, kLeastPassedOver, kMostPassedOver);
  passed_over_ = 0;
}

bool CopyQueue::update(engine::Instant now) {
  if (!is_any_under_way()) return false;
  const CopyJobs::State state = load();
  const size_t before = under_way_;
  if (!changed_ || state != seen_) {
    seen_ = state;
    changed_ = now;
    user_time_.reset();
  }
  note_ended(state);
  if (state.has_failed()) {
    take_back();
    change([](CopyJobs::State& one) { one.epoch &= static_cast<uint16_t>(~1u); });
  } else if (state.taken == state.finished) {
    if (state.offered != state.taken && now - *changed_ >= kTakeTime) take_back();
  } else if (now - *changed_ >= kStuckTime) {
    changed_ = now;
    if (give_up()) take_back();
  }
  if (!is_any_under_way()) changed_.reset();
  return under_way_ != before;
}

bool CopyQueue::give_up() {
  const CopyJobs::State state = load();
  if (state.taken == state.finished) return true;
  const auto number = static_cast<uint16_t>(state.taken - 1);
  CopyJobs::Job& job = jobs_.jobs[number % CopyJobs::kCount];
  for (CopyJobs::Range& range : job.there) {
    std::atomic_ref(range.length).store(0, std::memory_order_seq_cst);
  }
  const uint32_t thread = job.thread.load(std::memory_order_seq_cst);
  if (thread != 0 && !is_outside_call(thread)) return false;
  bool has_given_up = false;
  const CopyJobs::State after = change([&](CopyJobs::State& one) {
    has_given_up = one.taken != one.finished;
    if (!has_given_up) return;  // the thread has finished after all
    one.finished = one.taken;
    one.epoch = static_cast<uint16_t>((one.epoch | 1) + 1);  // the thread's result has no effect
  });
  if (has_given_up) ++gave_up_;
  for (Copy& copy : copies_) {
    if (!has_given_up || copy.number != number || copy.progress != CopyProgress::kUnderWay)
      continue;
    // The mark is copied last.
    const bool is_made = copy.mark != nullptr && job.mark == *copy.mark;
    copy.progress = is_made ? CopyProgress::kDone : CopyProgress::kFailed;
    --under_way_;
  }
  note_ended(after);
  return true;
}

/// Returns whether the thread is certainly not in the system call that copies. That call never
/// sleeps, except for a page that must be read from a disk.
bool CopyQueue::is_outside_call(uint32_t thread) {
  const std::string stat =
      proc::contents_of(proc::directory_of(pid_) + "/task/" + std::to_string(thread) + "/stat");
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return true;  // it has ended
  // proc(5): the state is field 3, and the time in user mode field 14.
  std::istringstream fields(stat.substr(name_end + 1));
  char state = 0;
  fields >> state;
  if (state != 'R' && state != 'D') return true;
  std::string skipped;
  for (int field = 4; field < 14; ++field) fields >> skipped;
  uint64_t user_time = 0;
  fields >> user_time;
  if (!user_time_) user_time_ = user_time;
  return user_time - *user_time_ >= kTicksOutside;
}

void CopyQueue::end() {
  if (under_way_ == 0) return;
  const auto before = std::chrono::steady_clock::now();
  take_back();
  user_time_.reset();
  while (true) {
    const CopyJobs::State state = load();
    if (state.taken == state.finished) {
      note_ended(state);
      break;
    }
    const auto waited = std::chrono::steady_clock::now() - before;
    if (waited < kYieldTime) {
      sched_yield();
      continue;
    }
    if (give_up()) break;
    if (waited >= kLongestWait) {
      may_ask_ = false;
      for (Copy& copy : copies_) {
        if (copy.progress == CopyProgress::kUnderWay) copy.progress = CopyProgress::kFailed;
      }
      under_way_ = 0;
      break;
    }
    std::this_thread::sleep_for(kYieldTime);
  }
  change([](CopyJobs::State& state) { state.epoch &= static_cast<uint16_t>(~1u); });
  pass_over_ = passed_over_ = 0;
  changed_.reset();
}

}  // namespace rocemu::daemon
