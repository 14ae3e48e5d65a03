#include "emulator/engine/adversarial/torn_read.h"

#include <algorithm>
#include <utility>

namespace rocemu::engine::adversarial {

Instant TornRead::again_at(const Burst& burst, Instant now) const {
  const auto found = waiting_.find(burst.qp);
  const bool waits = found != waiting_.end() && found->second.burst == burst;
  return waits ? std::max(now, found->second.until) : now;
}

Instant TornRead::take(const Burst& burst, std::span<const std::span<uint8_t>> data, Instant now) {
  const auto found = waiting_.find(burst.qp);
  if (found != waiting_.end() && found->second.burst == burst) {
    if (found->second.until > now) return found->second.until;
    const Waiting waiting = std::move(found->second);
    waiting_.erase(found);
    mix(waiting, data);
    return now;
  }
  if (draw_.one_in(4)) return now;
  const Duration delay = draw_.response_delay();
  Waiting waiting{.burst = burst,
                  .until = now + delay,
                  .first = {},
                  .shape = draw_.below(3),
                  .salt = draw_.bits(),
                  .border = draw_.bits()};
  const bool is_made = choices_.make([&] {
    return "the data of a READ is read from the memory of QP " + std::to_string(burst.qp.value) +
           " in two parts, " + in_words(delay) + " apart";
  });
  if (!is_made) return now;
  for (const std::span<uint8_t> part : data) {
    waiting.first.insert(waiting.first.end(), part.begin(), part.end());
  }
  const Instant until = waiting.until;
  waiting_.insert_or_assign(burst.qp, std::move(waiting));
  return until;
}

/// Replaces the first part, the last part or arbitrary words of the data with the contents of the
/// first read.
void TornRead::mix(const Waiting& waiting, std::span<const std::span<uint8_t>> data) {
  constexpr uint64_t kWord = 8;
  const std::vector<uint8_t>& first = waiting.first;
  const uint64_t address = waiting.burst.address;
  const uint64_t words = (address + first.size() + kWord - 1) / kWord - address / kWord;
  const uint64_t border = waiting.border % (words + 1);
  const auto is_early = [&](uint64_t word) {
    if (waiting.shape == 0) return word < border;
    if (waiting.shape == 1) return word >= border;
    return (Random(waiting.salt ^ word).next() >> 63) != 0;
  };
  uint64_t at = 0;
  for (const std::span<uint8_t> part : data) {
    for (uint8_t& byte : part) {
      if (at == first.size()) return;
      if (is_early((address + at) / kWord - address / kWord)) byte = first[at];
      ++at;
    }
  }
}

}  // namespace rocemu::engine::adversarial
