// `rocemu run --host N`: selects the device that COMMAND sees, and finds the run that it joins.
#pragma once

#include <string>

namespace rocemu::command {

/// Returns the number in "3" or "h3". Throws UsageError.
uint32_t parse_host(const std::string& text);

/// Restricts programs to one device, and to that device's address for connections: the device of
/// host `host` of the NIC in `dir`. Throws Failure if there is no such device.
void choose_host(const std::string& dir, uint32_t host);

/// Returns the directory of the NIC of the surrounding run; empty if there is none.
std::string outer_nic();

}  // namespace rocemu::command
