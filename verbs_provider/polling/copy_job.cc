#include "verbs_provider/polling/copy_job.h"

#include <atomic>
#include <optional>

#include <sys/syscall.h>

#include "emulator/abi/rings.h"
#include "verbs_provider/system/system_call.h"

namespace rocemu::provider {
namespace {

using abi::CopyJobs;

constexpr int64_t kLatelyNs = 1'000'000;

thread_local int64_t latest_copy_ns = -kLatelyNs;

/// Takes the next job and returns the state after that. Returns nothing if there is no job, or
/// another thread of the program is copying.
std::optional<CopyJobs::State> take(std::atomic<uint64_t>& word) {
  uint64_t seen = word.load(std::memory_order_relaxed);
  while (true) {
    CopyJobs::State state = CopyJobs::unpack(seen);
    if (!state.is_any_to_take()) return std::nullopt;
    ++state.taken;
    if (word.compare_exchange_weak(seen, CopyJobs::pack(state), std::memory_order_acq_rel)) {
      return state;
    }
  }
}

void finish(CopyJobs& copies, uint16_t epoch, bool succeeded) {
  uint64_t seen = copies.state.load(std::memory_order_relaxed);
  while (true) {
    CopyJobs::State state = CopyJobs::unpack(seen);
    if (state.epoch != epoch) {  // the daemon gave up on this job
      copies.returned.fetch_add(1, std::memory_order_release);
      return;
    }
    ++state.finished;
    if (!succeeded) state.epoch |= 1;
    if (copies.state.compare_exchange_weak(seen, CopyJobs::pack(state),
                                           std::memory_order_release)) {
      return;
    }
  }
}

}  // namespace

bool make_copy(Context::Parts& parts) {
  if (!parts.has_payload()) return false;
  CopyJobs& copies = parts.shared_payload().copies;
  const auto state = take(copies.state);
  if (!state) [[likely]] {
    return false;
  }
  const auto number = static_cast<uint16_t>(state->taken - 1);
  CopyJobs::Job& job = copies.jobs[number % CopyJobs::kCount];
  const uint64_t length = job.length;
  // The kernel reads the ranges when the call begins, so the daemon can cancel the copy until then.
  // This store precedes that, and the daemon reads `thread` after it has canceled the copy.
  const long thread = kernel_words(SYS_gettid, 0, 0, 0, 0, 0, 0);
  job.thread.store(static_cast<uint32_t>(thread), std::memory_order_seq_cst);
  const long call = job.is_read != 0 ? SYS_process_vm_readv : SYS_process_vm_writev;
  const long copied = kernel_words(call, job.pid, reinterpret_cast<long>(job.here), job.count_here,
                                   reinterpret_cast<long>(job.there), job.count_there, 0);
  finish(copies, state->epoch, copied >= 0 && static_cast<uint64_t>(copied) == length);
  return true;
}

bool has_copied_lately(int64_t now_ns) {
  return now_ns - latest_copy_ns < kLatelyNs;
}

void note_copy(int64_t now_ns) {
  latest_copy_ns = now_ns;
}

}  // namespace rocemu::provider
