// Marks for the compilers' sanitizers and valgrind: which side may access the buffers of posted
// requests, the program or the NIC, and whether they are initialized. All marks are set through
// weak symbols of the program's runtime library.
#pragma once

#include <memory>
#include <optional>

#include "emulator/sanitizer/check.h"
#include "verbs_provider/sanitizer/compilers/nic_threads.h"
#include "verbs_provider/sanitizer/compilers/poisoned_memory.h"
#include "verbs_provider/sanitizer/stacks.h"

namespace rocemu::sanitizer {

class BufferMarks final : public Check {
 public:
  /// Returns the marks for the program's sanitizers, or null if the program has none.
  static std::unique_ptr<BufferMarks> make(const Stacks& stacks);
  explicit BufferMarks(const Stacks& stacks);

  /// Removes all marks. Called when the process has no requests any more, as in a child of fork().
  void release_all();

  void on(const Post& event) override;
  void on(const PostTakenBack& event) override;
  void on(const Completion& event) override;
  void on(const DroppedCompletion& event) override;
  void on(const StateChange& event) override;
  void on(const Destruction& event) override;
  void on(const ContextEnd& event) override;

 private:
  void locate(const Objects& objects, Request& request) const;
  void end(Request& request);
  void end_all(Queue& queue);
  void end_queue(Queue& queue);
  std::span<const uintptr_t> stack_of(const CallSite& site) const;

  const Stacks& stacks_;
  std::optional<PoisonedMemory> poisoned_;
  std::optional<NicThreads> threads_;
};

/// Removes the marks of [begin, end). Called when the pages of registered memory were unmapped or
/// replaced. Takes no lock and allocates no memory.
void forget_marks(uint64_t begin, uint64_t end);

}  // namespace rocemu::sanitizer
