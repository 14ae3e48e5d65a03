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

bool WriteQueue::may_wait(std::span<const RemoteRange> to) const {
  const uint64_t length = total(to);
  return length != 0 && length <= kMaxLength && to.size() <= kMaxRanges &&
         std::ranges::all_of(to, [this](const RemoteRange& range) { return are_known(range); });
}

void WriteQueue::add(std::span<const RemoteRange> to,
                     std::span<const std::span<const uint8_t>> from) {
  for (const RemoteRange& range : to) {
    if (range.length != 0) ranges_.push_back(range);
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
  if (reach.write(ranges_, all, scratch) != MemoryResult::kDone) {
    // Of some the page is gone; the others are to be made all the same.
    forget_pages();
    std::span<const uint8_t> rest(bytes_);
    for (const RemoteRange& range : ranges_) {
      const std::array<std::span<const uint8_t>, 1> one{rest.first(range.length)};
      reach.write({&range, 1}, one, scratch);
      rest = rest.subspan(range.length);
    }
  }
  ranges_.clear();
  bytes_.clear();
}

bool WriteQueue::are_known(const RemoteRange& range) const {
  if (range.length == 0) return true;
  if (pages_.empty()) return false;
  const uint64_t last = (range.address + range.length - 1) / kPage;
  for (uint64_t page = range.address / kPage; page <= last; ++page) {
    if (pages_[page % kPages] != page) return false;
  }
  return true;
}

void WriteQueue::know(std::span<const RemoteRange> written) {
  if (pages_.empty()) pages_.resize(kPages, ~uint64_t{0});
  for (const RemoteRange& range : written) {
    if (range.length == 0) continue;
    const uint64_t first = range.address / kPage;
    const uint64_t last = (range.address + range.length - 1) / kPage;
    const uint64_t end = std::min(last, first + kPages - 1);
    for (uint64_t page = first; page <= end; ++page) pages_[page % kPages] = page;
  }
}

}  // namespace rocemu::daemon
