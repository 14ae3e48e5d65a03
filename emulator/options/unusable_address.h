// Refuses addresses that no NIC can have.
#pragma once

#include <string>

#include "wire/ip_address.h"

namespace rocemu::options {

/// Returns the reason why no device can have the address, and the remedy; empty if a device can.
/// A device can have a loopback address.
std::string why_unusable(const wire::IpAddress& address);

}  // namespace rocemu::options
