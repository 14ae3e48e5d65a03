#include "verbs_provider/sanitizer/compilers/nic_threads.h"

#include <string>

extern "C" {
[[gnu::weak]] void __tsan_destroy_fiber(void* fiber);
[[gnu::weak]] void* __tsan_get_current_fiber();
[[gnu::weak]] void __tsan_switch_to_fiber(void* fiber, unsigned flags);
[[gnu::weak]] void __tsan_set_fiber_name(void* fiber, const char* name);
[[gnu::weak]] void __tsan_acquire(void* address);
[[gnu::weak]] void __tsan_release(void* address);
[[gnu::weak]] void __tsan_read_range(void* address, size_t size);
[[gnu::weak]] void __tsan_write_range(void* address, size_t size);
[[gnu::weak]] void __tsan_func_entry(void* return_address);
[[gnu::weak]] void __tsan_func_exit();
[[gnu::weak]] void AnnotateIgnoreReadsBegin(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreReadsEnd(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreWritesBegin(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreWritesEnd(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreSyncBegin(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreSyncEnd(const char* file, int line);
}

namespace rocemu::sanitizer {
namespace {

/// The most queues that get separate fibers: the runtime has space for only some thousand threads.
constexpr size_t kMaxOwnFibers = 256;
constexpr unsigned kWithoutOrder = 1;  // __tsan_switch_to_fiber_no_sync

}  // namespace

void begin_unseen_by_thread_sanitizer() {
  if (!has_thread_sanitizer()) return;
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}
void end_unseen_by_thread_sanitizer() {
  if (!has_thread_sanitizer()) return;
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}
void begin_unseen_locks() {
  if (has_thread_sanitizer()) AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
}
void end_unseen_locks() {
  if (has_thread_sanitizer()) AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
}

bool NicThreads::are_wanted() {
  return has_thread_sanitizer() && __tsan_switch_to_fiber != nullptr &&
         __tsan_func_entry != nullptr && __tsan_read_range != nullptr;
}

void* NicThreads::fiber_of(const Queue& queue) {
  Fiber& fiber = fibers_[&queue];
  if (fiber.fiber != nullptr) return fiber.fiber;
  if (own_fibers_ < kMaxOwnFibers) {
    ++own_fibers_;
    const std::string name = std::string("the NIC, ") +
                             (queue.kind == QueueKind::kShared ? "SRQ " : "QP ") +
                             std::to_string(queue.number);
    fiber = {__tsan_create_fiber(0), true};
    __tsan_set_fiber_name(fiber.fiber, name.c_str());
    return fiber.fiber;
  }
  if (shared_fiber_ == nullptr) {
    shared_fiber_ = __tsan_create_fiber(0);
    __tsan_set_fiber_name(shared_fiber_, "the NIC");
  }
  fiber.fiber = shared_fiber_;
  return shared_fiber_;
}

void NicThreads::post(const Queue& queue, Request& request, bool writes,
                      std::span<const uintptr_t> stack) {
  if (request.completion_point == nullptr) request.completion_point = std::make_unique<uint64_t>();
  void* const nic = fiber_of(queue);
  void* const self = __tsan_get_current_fiber();
  uint64_t* const completion = request.completion_point.get();
  __tsan_release(&post_point_);
  __tsan_switch_to_fiber(nic, kWithoutOrder);
  __tsan_acquire(&post_point_);
  for (size_t i = stack.size(); i-- > 0;) __tsan_func_entry(reinterpret_cast<void*>(stack[i]));
  for (const MemoryRange& range : request.memory) {
    if (range.address == 0) continue;
    auto* const bytes = reinterpret_cast<void*>(range.address);
    writes ? __tsan_write_range(bytes, range.length) : __tsan_read_range(bytes, range.length);
  }
  for (size_t i = stack.size(); i-- > 0;) __tsan_func_exit();
  __tsan_release(completion);
  __tsan_switch_to_fiber(self, kWithoutOrder);
}

void NicThreads::complete(const Request& request) {
  if (request.completion_point != nullptr) __tsan_acquire(request.completion_point.get());
}

void NicThreads::end(const Queue& queue) {
  const auto found = fibers_.find(&queue);
  if (found == fibers_.end()) return;
  if (found->second.is_own) {
    __tsan_destroy_fiber(found->second.fiber);
    --own_fibers_;
  }
  fibers_.erase(found);
}

void NicThreads::send_message(uint32_t from) {
  std::unique_ptr<uint64_t>& point = message_points_[from];
  if (point == nullptr) point = std::make_unique<uint64_t>();
  __tsan_release(point.get());
}

void NicThreads::receive_message(uint32_t from) {
  const auto point = message_points_.find(from);
  if (point != message_points_.end()) __tsan_acquire(point->second.get());
}

void NicThreads::change_remote_memory() {
  __tsan_release(&remote_point_);
}
void NicThreads::read_remote_memory() {
  __tsan_acquire(&remote_point_);
}

}  // namespace rocemu::sanitizer
