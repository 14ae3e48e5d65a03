// Prints packets as one line of text, for logs and failing tests.
#pragma once

#include <string>

#include "wire/eth_headers.h"
#include "wire/packet.h"

namespace rocemu::wire {

// Returns the packet as text, such as "10.7.0.1 > 10.7.0.2 RC SEND First qp=0x12 psn=256 len=1024".
std::string to_string(const Packet& packet);

// Returns the AETH as text, such as "ACK credits=31 msn=1", "RNR NAK timer=0.64ms msn=1" or "NAK
// remote access error msn=1".
std::string to_string(const Aeth& aeth);

// Returns the number in the form of QPNs in all texts, such as "0x12".
std::string hexadecimal(uint64_t value);

}  // namespace rocemu::wire
