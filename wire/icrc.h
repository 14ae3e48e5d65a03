// The invariant CRC: a CRC-32 over all fields that do not change between the two ends of a RoCEv2
// flow (IBTA vol 1, annex A17.3.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rocemu::wire {

inline constexpr size_t kIcrcSize = 4;

// Returns the CRC-32 that gzip uses (ISO-HDLC) of some bytes followed by `bytes`. `crc` is the CRC
// of the former, or 0 if there are none.
uint32_t crc32(uint32_t crc, std::span<const uint8_t> bytes);

// Computes the ICRC, which is stored little-endian. `ip_packet` starts at the IP header and ends
// before the ICRC. Any bytes are accepted: for bytes that are not a RoCEv2 packet the result has no
// meaning.
uint32_t compute_icrc(std::span<const uint8_t> ip_packet);

void store_icrc(uint32_t icrc, std::span<uint8_t, kIcrcSize> bytes);
uint32_t load_icrc(std::span<const uint8_t, kIcrcSize> bytes);

}  // namespace rocemu::wire
