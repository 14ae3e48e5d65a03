// The IPv4 identification in the ICRC. It is covered, but a UDP socket neither shows the one that a
// datagram came with nor lets a sender choose. Since a CRC is linear, both can be done without:
// the one of a frame can be computed from its ICRC, and an ICRC follows a change of it without
// another look at the frame.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace rocemu::wire {

// `frame` from its Ethernet header to the end of its ICRC, IPv4 without options.
//
// The identification with which the frame's ICRC is right, everything else being as it is: the
// frame's own, or the only other one. Nothing if there is none: the frame is damaged. Of damaged
// frames one in 65,536 passes, but none with a single wrong bit outside the identification (up to
// 4,300 bytes, all of which were tried). Over IPv6, which has no identification: 0 if the ICRC is
// right. Ethernet padding after the IP packet is ignored.
std::optional<uint16_t> find_identification(std::span<const uint8_t> frame);

// The identification in the header of an IPv4 frame; 0 for any other.
uint16_t identification_of(std::span<const uint8_t> frame);

// Both do nothing to a frame that is none of IPv4. The first writes what was found into the header,
// with its checksum; the second gives the frame another identification, the ICRC with it. An ICRC
// that was wrong stays wrong.
void write_identification(std::span<uint8_t> frame, uint16_t identification);
void change_identification(std::span<uint8_t> frame, uint16_t identification);

}  // namespace rocemu::wire
