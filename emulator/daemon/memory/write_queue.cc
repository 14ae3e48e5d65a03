#include "emulator/daemon/memory/write_queue.h"

#include <algorithm>
#include <array>

namespace rocemu::daemon {
namespace {

using engine::MemoryResult;
using engine::RemoteRange;

uint64_t total(std::span<const RemoteRange> ranges) {
  uint64_t length = 0;
  for (const RemoteRange& range : ranges) length += range.length;
  return length;
}

bool overlap(const RemoteRange& a, const RemoteRange& b) {
  return a.address < b.address + b.length && b.address < a.address + a.length;
}

}  // namespace

bool WriteQueue::may_wait(std::span<const RemoteRange> to) {
  const uint64_t length = total(to);
  return length != 0 && length <= kMaxLength && to.size() <= kMaxRanges;
}

void WriteQueue::add(std::span<const RemoteRange> to,
                     std::span<const std::span<const uint8_t>> from) {
  for (const RemoteRange& range : to) {
    if (range.length == 0) continue;
    // A system call spends most of its time for a range on finding the pages, so adjacent writes
    // become one range.
    if (!ranges_.empty() && ranges_.back().address + ranges_.back().length == range.address) {
      ranges_.back().length += range.length;
    } else {
      ranges_.push_back(range);
    }
  }
  for (const std::span<const uint8_t> piece : from) {
    bytes_.insert(bytes_.end(), piece.begin(), piece.end());
  }
}

bool WriteQueue::overlaps(std::span<const RemoteRange> ranges) const {
  return std::ranges::any_of(ranges_, [&](const RemoteRange& waiting) {
    return std::ranges::any_of(ranges,
                               [&](const RemoteRange& other) { return overlap(waiting, other); });
  });
}

void WriteQueue::flush(const MemoryReach& reach, MemoryReach::Scratch& scratch) {
  if (empty()) return;
  const std::array<std::span<const uint8_t>, 1> all{bytes_};
  if (reach.write(ranges_, all, scratch) == MemoryResult::kFault) reach.write_pinned(ranges_, all);
  ranges_.clear();
  bytes_.clear();
}

}  // namespace rocemu::daemon
