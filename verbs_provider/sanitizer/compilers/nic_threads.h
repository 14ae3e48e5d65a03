// With ThreadSanitizer: the NIC as threads of the program, one for each queue, by name "the NIC, QP
// 5". They are fibers of the runtime. A post is followed by the NIC's accesses to the buffers, and
// these by the completion: so what touches a buffer in between is an ordinary report of
// ThreadSanitizer with two stacks, that of the access and that of the post.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>

#include "emulator/sanitizer/program_objects.h"

namespace rocemu::sanitizer {

/// Keeps our own accesses and locks out of the runtime's sight, or verbs would order the program's
/// threads. May be nested.
void begin_unseen_by_thread_sanitizer();
void end_unseen_by_thread_sanitizer();
/// The same for locks alone.
void begin_unseen_locks();
void end_unseen_locks();

class NicThreads {
 public:
  /// Whether the program has ThreadSanitizer.
  static bool are_wanted();

  /// The calling thread posts a request, whose `memory` the NIC reads or writes. `stack` has return
  /// addresses, from the inside out.
  void post(const Queue& queue, Request& request, bool writes, std::span<const uintptr_t> stack);
  /// The calling thread has the completion of the request, and all of its queue before it.
  void complete(const Request& request);
  /// The calling thread has ended the queue.
  void end(const Queue& queue);

  /// A message orders the threads that post and poll it, if they are of one process. QP numbers are
  /// not those of one device: one too many orders too much, and nothing is reported in error.
  void send_message(uint32_t from);
  void receive_message(uint32_t from);
  /// Memory that a peer may change, by an atomic for one, orders the threads that do and that look.
  void change_remote_memory();
  void read_remote_memory();

 private:
  struct Fiber {
    void* fiber = nullptr;
    bool is_own = false;  // of the queue alone
  };
  void* fiber_of(const Queue& queue);

  std::unordered_map<const Queue*, Fiber> fibers_;
  size_t own_fibers_ = 0;
  void* shared_fiber_ = nullptr;  // of the queues beyond some number
  uint64_t post_point_ = 0, remote_point_ = 0;
  std::unordered_map<uint32_t, std::unique_ptr<uint64_t>> message_points_;  // by the sender's QP
};

}  // namespace rocemu::sanitizer
