// Prints the connection manager's messages as one line of text, for logs and failing tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "wire/cm/cm_messages.h"

namespace rocemu::wire {

/// Returns the name of the message, such as "REQ" or "SIDR_REP".
std::string_view name(CmAttribute attribute);
/// Returns the name of the reason, such as "consumer" or "stale_connection"; "unknown" for unknown
/// values.
std::string_view reject_reason_name(uint16_t reason);

/// Returns the message as text, such as "CM REQ id=0x300ec1a2 service=0x1061c06 qpn=0x11
/// psn=13482618 ... tid=0x4a2c10e30".
std::string to_string(const CmMad& mad);

/// Returns the text for a MAD of any class, such as "MAD class=0x4 version=1 method=0x1
/// attribute=0x12 status=0x0 tid=0x7".
std::string to_string(const MadHeader& header);

}  // namespace rocemu::wire
