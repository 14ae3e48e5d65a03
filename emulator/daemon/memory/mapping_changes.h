// Tracks registered memory to which a program has given other pages since it registered the memory
// (abi::MappingChanges). A NIC would have pinned the old pages, but the daemon accesses the new
// ones.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "emulator/abi/rings.h"
#include "emulator/engine/base/host_memory.h"

namespace rocemu::daemon {

class MappingChanges {
 public:
  struct Change {
    uint64_t begin, end;
    abi::MappingCall call;
  };

  /// Sets the shared memory in which the client reports changes.
  void share(const abi::MappingChanges& changes) { shared_ = &changes; }

  /// Returns whether find() might return a change. This is a cheap check.
  bool may_be_any() const {
    return shared_ != nullptr &&
           (!known_.empty() || shared_->count.load(std::memory_order_acquire) != seen_);
  }
  /// Returns a change that gave other pages to some of these bytes since they were registered;
  /// nothing if there is none.
  std::optional<Change> find(std::span<const engine::RemoteRange> ranges);
  /// Forgets changes of these bytes, because the client registers them: a NIC would pin the pages
  /// that they have now.
  void forget(uint64_t begin, uint64_t end);

 private:
  static constexpr size_t kMaxKnown = 256;

  void read_news();

  const abi::MappingChanges* shared_ = nullptr;
  uint32_t seen_ = 0;
  std::vector<Change> known_;
};

}  // namespace rocemu::daemon
