// Shows the NIC to ThreadSanitizer as threads of the program, one for each queue, with names such
// as "the NIC, QP 5". They are fibers of the runtime. The NIC's accesses to the buffers come after
// the post and before the completion, so an access in between causes an ordinary report of
// ThreadSanitizer with two stacks, that of the access and that of the post.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>

#include "emulator/sanitizer/program_objects.h"

extern "C" [[gnu::weak]] void* __tsan_create_fiber(unsigned flags);

namespace rocemu::sanitizer {

inline bool has_thread_sanitizer() {
  return __tsan_create_fiber != nullptr;
}

/// Hides our own accesses and locks from the runtime; otherwise verbs would order the program's
/// threads. Can be nested.
void begin_unseen_by_thread_sanitizer();
void end_unseen_by_thread_sanitizer();
/// Hides only locks.
void begin_unseen_locks();
void end_unseen_locks();

class NicThreads {
 public:
  /// Returns whether the program has ThreadSanitizer.
  static bool are_wanted();

  /// Notes that the calling thread posts a request, whose `memory` the NIC reads or writes. `stack`
  /// has the return addresses, innermost first.
  void post(const Queue& queue, Request& request, bool writes, std::span<const uintptr_t> stack);
  /// Notes that the calling thread has polled the completion of the request, and of all earlier
  /// requests of its queue.
  void complete(const Request& request);
  /// Notes that the calling thread has destroyed the queue.
  void end(const Queue& queue);

  /// Notes that a thread posts or polls a message, which orders the two threads if they belong to
  /// one process. QP numbers of different devices are not distinguished, which can order too many
  /// threads, but never causes a false report.
  void send_message(uint32_t from);
  void receive_message(uint32_t from);
  /// Notes a change or a read of memory that a peer can change, for example by an atomic. This
  /// orders the threads that change the memory with the threads that read it.
  void change_remote_memory();
  void read_remote_memory();

 private:
  struct Fiber {
    void* fiber = nullptr;
    bool is_own = false;  // used by one queue only
  };
  void* fiber_of(const Queue& queue);

  std::unordered_map<const Queue*, Fiber> fibers_;
  size_t own_fibers_ = 0;
  void* shared_fiber_ = nullptr;  // of all queues beyond a limit
  uint64_t post_point_ = 0, remote_point_ = 0;
  std::unordered_map<uint32_t, std::unique_ptr<uint64_t>> message_points_;  // by the sender's QP
};

}  // namespace rocemu::sanitizer
