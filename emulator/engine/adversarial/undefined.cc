#include "emulator/engine/adversarial/undefined.h"

#include <algorithm>
#include <array>
#include <vector>

namespace rocemu::engine::adversarial {

void spoil_buffer(HostMemory& memory, const MemoryTable& regions, PdId pd, const SgeList& buffer,
                  uint64_t length) {
  const uint64_t bytes = std::min({length, total(buffer), kMaxSpoiled});
  if (bytes == 0) return;
  const auto place = resolve(regions, pd, buffer, 0, bytes, abi::kAccessLocalWrite);
  if (!place) return;
  const std::vector<uint8_t> pattern(bytes, kUndefinedByte);
  const std::array<std::span<const uint8_t>, 1> from{pattern};
  static_cast<void>(place->write(memory, from));
}

}  // namespace rocemu::engine::adversarial
