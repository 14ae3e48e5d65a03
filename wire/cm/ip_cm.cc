#include "wire/cm/ip_cm.h"

#include <algorithm>
#include <array>

#include "wire/big_endian.h"
#include "wire/layout.h"

namespace rocemu::wire {
namespace {

constexpr size_t kV4Size = 4;
using AddressBytes = std::array<uint8_t, 16>;

struct Layout {
  uint8_t cm_version;  // major, minor
  uint8_t ip_version;  // IP version, reserved
  Be16 source_port;
  AddressBytes source;
  AddressBytes destination;
};
static_assert(sizeof(Layout) == IpCmHeader::kSize && alignof(Layout) == 1);

IpAddress read_address(const AddressBytes& bytes, bool is_v4) {
  if (!is_v4) return {bytes};
  const auto* v4 = bytes.end() - kV4Size;
  return IpAddress::from_v4(v4[0], v4[1], v4[2], v4[3]);
}

AddressBytes write_address(const IpAddress& address, bool is_v4) {
  AddressBytes bytes = address.bytes;
  if (is_v4) std::fill_n(bytes.begin(), bytes.size() - kV4Size, uint8_t{0});
  return bytes;
}

}  // namespace

Result<IpCmHeader, IpCmError> parse_ip_cm_header(
    std::span<const uint8_t, IpCmHeader::kSize> bytes) {
  const auto layout = load<Layout>(bytes);
  if (layout.cm_version >> 4 != 0) return IpCmError::kBadMajorVersion;
  const int ip_version = layout.ip_version >> 4;
  if (ip_version != 4 && ip_version != 6) return IpCmError::kBadIpVersion;
  return IpCmHeader{.source_port = layout.source_port.get(),
                    .source = read_address(layout.source, ip_version == 4),
                    .destination = read_address(layout.destination, ip_version == 4)};
}

void emit(const IpCmHeader& header, std::span<uint8_t, IpCmHeader::kSize> bytes) {
  const bool is_v4 = header.source.is_v4() && header.destination.is_v4();
  store(Layout{.cm_version = 0,
               .ip_version = is_v4 ? uint8_t{0x40} : uint8_t{0x60},
               .source_port = Be16(header.source_port),
               .source = write_address(header.source, is_v4),
               .destination = write_address(header.destination, is_v4)},
        bytes);
}

}  // namespace rocemu::wire
