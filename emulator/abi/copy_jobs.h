// Copies of payload that the daemon asks a client to make, in shared memory. While a thread of the
// client waits for completions anyway, it copies a long message straight between its own memory and
// that of the peer, with one system call. The daemon would need two (docs/design/direct-copy.md).
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace rocemu::abi {

/// A queue of copies, which the client makes in order, one at a time.
struct CopyJobs {
  static constexpr uint32_t kCount = 16, kMaxRanges = 4, kMarks = 64;

  /// A range of memory, in the layout of iovec (process_vm_writev(2)), so that the client passes
  /// the ranges to the kernel where they are. The daemon can thus still cancel a copy that a thread
  /// has taken but not begun: it sets the lengths of the peer's ranges to 0.
  struct Range {
    uint64_t address;
    uint64_t length;
  };
  struct Job {
    uint64_t length;      // in bytes
    int32_t pid;          // of the peer's process
    uint32_t is_read;     // 1: from the peer to the client; 0: from the client to the peer
    uint32_t count_here;  // of ranges
    uint32_t count_there;
    /// The thread that copies (gettid(2)); 0 until its system call is about to begin
    std::atomic<uint32_t> thread;
    uint32_t reserved;
    uint64_t mark;                // identifies the job
    Range here[kMaxRanges + 1];   // in the client
    Range there[kMaxRanges + 1];  // in the peer's process
  };

  /// The state, which each side changes as a whole, by compare-and-swap. Job n is in entry n %
  /// kCount. The numbers wrap at 2^16.
  struct State {
    uint16_t offered;   // jobs ever offered; the daemon takes back jobs that no thread has taken
    uint16_t taken;     // jobs ever taken by a thread of the client
    uint16_t finished;  // jobs ever finished
    /// Twice the number of times that the daemon gave up on a job that was taken but not finished,
    /// plus 1 if the latest job has failed. After a failure no thread takes a job until the daemon
    /// has taken back the others.
    uint16_t epoch;

    bool operator==(const State&) const = default;
    bool has_failed() const { return (epoch & 1) != 0; }
    bool is_any_to_take() const { return offered != taken && taken == finished && !has_failed(); }
  };
  static_assert(sizeof(State) == 8);
  static State unpack(uint64_t word) { return std::bit_cast<State>(word); }
  static uint64_t pack(State state) { return std::bit_cast<uint64_t>(state); }

  alignas(64) std::atomic<uint64_t> state;
  /// The number of threads that have finished a job on which the daemon had given up; written by
  /// the client. Until all have, its jobs are not reused, since such a thread would copy again.
  std::atomic<uint32_t> returned;
  /// The address of this object in the client's memory; 0 until the client has written it.
  std::atomic<uint64_t> address;
  /// The last range of a job to the memory of this client copies the job's `mark` to one of these.
  /// The kernel copies the ranges in order, so all others have been copied then, even if the thread
  /// is stopped before it can say so.
  std::atomic<uint64_t> marks[kMarks];
  alignas(64) Job jobs[kCount];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(sizeof(CopyJobs::Job) == 200);

}  // namespace rocemu::abi
