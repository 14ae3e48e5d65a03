// Tracks memory whose pages have changed since the client registered it (abi::MappingChanges). A
// NIC has pinned the old pages; the daemon accesses the new ones.
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

  /// Takes the memory that the client writes and shares with the daemon.
  void share(const abi::MappingChanges& changes) { shared_ = &changes; }

  /// Returns whether find() can return something. This is a cheap check.
  bool may_be_any() const {
    return shared_ != nullptr &&
           (!known_.empty() || shared_->count.load(std::memory_order_acquire) != seen_);
  }
  /// Returns a change of the pages of some of these bytes since they were registered.
  std::optional<Change> find(std::span<const engine::RemoteRange> ranges);
  /// Notes that the client registers these bytes: a NIC would pin the pages that are mapped there
  /// now.
  void forget(uint64_t begin, uint64_t end);

 private:
  static constexpr size_t kMaxKnown = 256;

  void read_news();

  const abi::MappingChanges* shared_ = nullptr;
  uint32_t seen_ = 0;
  std::vector<Change> known_;
};

}  // namespace rocemu::daemon
