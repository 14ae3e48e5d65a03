#include "wire/udp.h"

#include "wire/big_endian.h"
#include "wire/layout.h"

namespace rocemu::wire {
namespace {

struct Layout {
  Be16 src_port;
  Be16 dst_port;
  Be16 length;
  Be16 checksum;
};
static_assert(sizeof(Layout) == UdpHeader::kSize && alignof(Layout) == 1);

}  // namespace

UdpHeader parse_udp(std::span<const uint8_t, UdpHeader::kSize> bytes) {
  const auto layout = load<Layout>(bytes);
  return {.src_port = layout.src_port.get(),
          .dst_port = layout.dst_port.get(),
          .length = layout.length.get(),
          .checksum = layout.checksum.get()};
}

void emit(const UdpHeader& header, std::span<uint8_t, UdpHeader::kSize> bytes) {
  const Layout layout{.src_port = Be16(header.src_port),
                      .dst_port = Be16(header.dst_port),
                      .length = Be16(header.length),
                      .checksum = Be16(header.checksum)};
  store(layout, bytes);
}

}  // namespace rocemu::wire
