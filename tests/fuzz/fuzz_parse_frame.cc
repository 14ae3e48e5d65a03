// Parses any bytes as a frame. The frame is refused with a reason, or it is parsed; if the parsed
// frame is emitted and parsed again, the result must be equal.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "wire/packet.h"
#include "wire/print.h"

using namespace rocemu::wire;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
  (void)check_icrc(bytes);
  const auto packet = parse_frame(bytes);
  if (!packet) return name(packet.error()).empty() ? (std::abort(), 0) : 0;
  (void)to_string(*packet);
  std::vector<uint8_t> frame(frame_size(*packet, packet->payload.size()));
  if (emit_frame(*packet, frame) != frame.size() || !check_icrc(frame)) std::abort();
  const auto again = parse_frame(frame);
  if (!again || again->bth != packet->bth || again->src_ip != packet->src_ip ||
      again->payload.size() != packet->payload.size()) {
    std::abort();
  }
  return 0;
}
