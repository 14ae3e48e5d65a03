#include "emulator/daemon/memory/mapping_changes.h"

#include <algorithm>

namespace rocemu::daemon {

std::optional<MappingChanges::Change> MappingChanges::find(
    std::span<const engine::RemoteRange> ranges) {
  read_news();
  const auto found = std::ranges::find_if(known_, [&](const Change& change) {
    return std::ranges::any_of(ranges, [&](const engine::RemoteRange& range) {
      return range.address < change.end && change.begin < range.address + range.length;
    });
  });
  if (found == known_.end()) return std::nullopt;
  return *found;
}

void MappingChanges::forget(uint64_t begin, uint64_t end) {
  if (!may_be_any()) return;
  read_news();
  std::vector<Change> left;
  for (const Change& change : known_) {
    if (change.begin < begin)
      left.push_back({change.begin, std::min(change.end, begin), change.call});
    if (change.end > end) left.push_back({std::max(change.begin, end), change.end, change.call});
  }
  known_ = std::move(left);
}

/// Reads the changes that the client has reported since the last call. The entries come from the
/// client: invalid ones are skipped, and if there are too many, only the latest are kept.
void MappingChanges::read_news() {
  if (shared_ == nullptr) return;
  constexpr uint32_t kCount = abi::MappingChanges::kCount;
  const uint32_t count = shared_->count.load(std::memory_order_acquire);
  if (count - seen_ > kCount) seen_ = count - kCount;
  for (; seen_ != count; ++seen_) {
    const auto& entry = shared_->entries[seen_ % kCount];
    const Change change{.begin = entry.begin.load(std::memory_order_relaxed),
                        .end = entry.end.load(std::memory_order_relaxed),
                        .call = entry.call.load(std::memory_order_relaxed)};
    if (change.begin >= change.end || change.call > abi::MappingCall::kLast) continue;
    if (known_.size() == kMaxKnown) known_.erase(known_.begin());
    known_.push_back(change);
  }
}

}  // namespace rocemu::daemon
