// Whether a thread runs in a loop that cannot end by itself: it waits for a change of memory, as
// code does that spins on a flag. Its registers tell: in such a loop the same few states come again
// and again, and in one that counts, or walks over memory, never the same.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

namespace rocemu {

class SpinningThreads {
 public:
  /// Looks once. True if the thread has spun at this look and the ones before, and has run since
  /// the one before: had anything changed that it waits for, it would have seen that.
  /// `again`: it was looked at just now, and need not have run since then.
  bool spins(pid_t process, pid_t thread, bool again = false);
  /// A number for the general registers of a running thread, which is stopped for a moment. Nothing
  /// if it may not be traced, is traced by somebody else, or is in a system call.
  std::optional<uint64_t> registers_of(pid_t process, pid_t thread);
  /// Memory may have changed: those that have spun so far do so still only once they have run
  /// again.
  void look_again();
  /// Lets go of threads that came to their end while they were looked at: until then their parents
  /// cannot wait for them.
  void let_go();
  /// It sleeps, or is gone.
  void forget(pid_t thread) { threads_.erase(thread); }

 private:
  struct Thread {
    std::set<uint64_t> states;
    uint32_t repeated = 0;  // looks in a row that found a state again
    std::chrono::nanoseconds own_time{};
    bool must_run = false;  // before it is looked at again
  };
  std::map<pid_t, Thread> threads_;
  std::set<pid_t> ended_;  // while they were traced; or others that are not, which does no harm
};

}  // namespace rocemu
