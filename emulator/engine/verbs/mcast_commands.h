// Control requests about multicast groups.
#pragma once

#include "emulator/engine/verbs/command_context.h"

namespace rocemu::engine {

// attach_mcast() and detach_mcast() return 0, or the errno value that their man page names.

/// Notifies the network outside the device, if there is one, that the device's first QP has joined
/// the group or its last QP has left the group.
void report_membership(CommandContext& context, DeviceIndex device, const wire::IpAddress& group,
                       bool member);

int attach_mcast(CommandContext& context, ClientId client, const abi::Request::Body& in);
int detach_mcast(CommandContext& context, ClientId client, const abi::Request::Body& in);

}  // namespace rocemu::engine
