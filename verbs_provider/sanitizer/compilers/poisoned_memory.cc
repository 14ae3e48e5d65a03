#include "verbs_provider/sanitizer/compilers/poisoned_memory.h"

#include <algorithm>
#include <iterator>

namespace rocemu::sanitizer {
namespace {

constexpr uint64_t kGranule = 8;
constexpr uint8_t kPoisoned = 0xf7;  // the value for memory that the program poisons

}  // namespace

uint8_t& PoisonedMemory::shadow_of(Granule granule) const {
  return *reinterpret_cast<uint8_t*>(shadow_ + granule);
}

/// Returns the value that the shadow would have without our poisoning.
uint8_t PoisonedMemory::value_before(Granule granule) const {
  const auto behind = segments_.upper_bound(granule);
  if (behind == segments_.begin() || std::prev(behind)->second.end <= granule)
    return shadow_of(granule);
  for (const auto& [at, value] : std::prev(behind)->second.before)
    if (at == granule) return value;
  return 0;
}

/// Returns the granules that contain no accessible bytes outside of the range.
std::pair<uint64_t, uint64_t> PoisonedMemory::granules_of(const MemoryRange& range) const {
  const uint64_t end = range.address + range.length;
  const Granule first = (range.address + kGranule - 1) / kGranule;
  Granule behind = end / kGranule;
  if (const uint64_t part = end % kGranule; part != 0 && first <= behind) {
    const uint8_t valid = value_before(behind);
    if (valid != 0 && valid <= part) ++behind;
  }
  return {first, std::max(first, behind)};
}

void PoisonedMemory::split(Granule at) {
  const auto behind = segments_.upper_bound(at);
  if (behind == segments_.begin()) return;
  const auto segment = std::prev(behind);
  if (segment->first == at || segment->second.end <= at) return;
  auto& before = segment->second.before;
  const auto part = std::lower_bound(before.begin(), before.end(), std::pair(at, uint8_t{0}));
  Segment second{segment->second.end, segment->second.holders, {part, before.end()}};
  before.erase(part, before.end());
  segment->second.end = at;
  segments_.emplace(at, std::move(second));
}

PoisonedMemory::Segment PoisonedMemory::poisoned(Granule begin, Granule end) const {
  Segment segment{end, 1, {}};
  for (Granule granule = begin; granule != end; ++granule) {
    uint8_t& value = shadow_of(granule);
    if (value != 0) segment.before.emplace_back(granule, value);
    if (value < kGranule) value = kPoisoned;
  }
  return segment;
}

/// Restores the earlier shadow, except where its value differs from ours: the memory was then
/// freed, allocated again, or similar.
void PoisonedMemory::restore(Granule begin, const Segment& segment) const {
  for (const auto& [granule, value] : segment.before)
    if (uint8_t& now = shadow_of(granule); now == kPoisoned && value < kGranule) now = value;
  auto untouched = segment.before.begin();
  for (Granule granule = begin; granule != segment.end; ++granule) {
    if (untouched != segment.before.end() && untouched->first == granule) {
      ++untouched;
    } else if (uint8_t& now = shadow_of(granule); now == kPoisoned) {
      now = 0;
    }
  }
}

void PoisonedMemory::hold(const MemoryRange& range) {
  const auto [first, end] = granules_of(range);
  if (first == end) return;
  split(first);
  split(end);
  auto next = segments_.lower_bound(first);
  for (Granule at = first; at != end;) {
    const Granule gap_end = next == segments_.end() ? end : std::min(next->first, end);
    if (at != gap_end) {
      segments_.emplace_hint(next, at, poisoned(at, gap_end));
      at = gap_end;
    } else {
      ++next->second.holders;
      at = next->second.end;
      ++next;
    }
  }
}

void PoisonedMemory::release(const MemoryRange& range) {
  const auto [first, end] = granules_of(range);
  if (first == end) return;
  split(first);
  split(end);
  for (auto at = segments_.lower_bound(first); at != segments_.end() && at->first < end;) {
    if (--at->second.holders != 0) {
      ++at;
      continue;
    }
    restore(at->first, at->second);
    at = segments_.erase(at);
  }
}

void PoisonedMemory::release_all() {
  for (const auto& [begin, segment] : segments_) restore(begin, segment);
  segments_.clear();
}

void PoisonedMemory::forget(uint64_t shadow, uint64_t begin, uint64_t end) {
  auto* const bytes = reinterpret_cast<uint8_t*>(shadow);
  for (Granule granule = begin / kGranule; granule < end / kGranule; ++granule)
    if (bytes[granule] == kPoisoned) bytes[granule] = 0;
}

}  // namespace rocemu::sanitizer

extern "C" {
[[gnu::weak]] void __asan_get_shadow_mapping(size_t* scale, size_t* offset);
[[gnu::weak]] void __asan_poison_memory_region(const volatile void* address, size_t size);
[[gnu::weak]] void __asan_unpoison_memory_region(const volatile void* address, size_t size);
}

namespace rocemu::sanitizer {

std::optional<uint64_t> address_sanitizer_shadow() {
  if (__asan_get_shadow_mapping == nullptr || __asan_poison_memory_region == nullptr ||
      __asan_unpoison_memory_region == nullptr)
    return std::nullopt;
  size_t scale = 0, offset = 0;
  __asan_get_shadow_mapping(&scale, &offset);
  constexpr size_t kScale = 3;
  if (scale != kScale) return std::nullopt;
  // With allow_user_poisoning=0 the runtime's function has no effect.
  alignas(kGranule) static volatile char probe[kGranule];
  const auto* const shadow = reinterpret_cast<const volatile uint8_t*>(
      offset + reinterpret_cast<uint64_t>(&probe) / kGranule);
  __asan_poison_memory_region(probe, sizeof probe);
  const bool is_allowed = *shadow == kPoisoned;
  __asan_unpoison_memory_region(probe, sizeof probe);
  return is_allowed ? std::optional<uint64_t>(offset) : std::nullopt;
}

}  // namespace rocemu::sanitizer
