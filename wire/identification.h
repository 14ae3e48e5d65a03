// The IPv4 identification in the ICRC. The ICRC covers it, but a UDP socket neither reports the
// identification of a received datagram nor lets a sender choose it. Since a CRC is linear, neither
// is needed: the identification of a frame can be computed from its ICRC, and an ICRC can be
// adjusted to another identification without reading the frame again.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace rocemu::wire {

// Returns the identification with which the frame's ICRC is correct, with all other bytes
// unchanged: the frame's own, or the only other one. Returns nothing if no identification makes it
// correct, because the frame is damaged. One of 65,536 damaged frames passes, but no frame with a
// single wrong bit among the bits that the ICRC covers, outside the identification (tested for
// frames of up to 4,300 bytes). Over IPv6, which has no identification, returns 0 if the ICRC is
// correct.
//
// `frame` extends from its Ethernet header to the end of its ICRC; IPv4 must have no options.
// Ethernet padding after the IP packet is ignored.
std::optional<uint16_t> find_identification(std::span<const uint8_t> frame);

// Returns the identification in the header of an IPv4 frame; 0 for any other frame.
uint16_t identification_of(std::span<const uint8_t> frame);

// The following two functions ignore frames that are not IPv4. The first writes the identification
// that was found into the header and updates its checksum. The second gives the frame another
// identification and updates the ICRC; a wrong ICRC remains wrong.
void write_identification(std::span<uint8_t> frame, uint16_t identification);
void change_identification(std::span<uint8_t> frame, uint16_t identification);

}  // namespace rocemu::wire
