// Control requests about multicast groups.
#pragma once

#include "emulator/engine/verbs/command_context.h"

namespace rocemu::engine {

// Each function returns 0, or the errno value that its man page names.

/// Notifies the network outside the device, if there is one, that the device's first QP has joined
/// the group or its last one has left it.
void report_membership(CommandContext& context, DeviceIndex device, const wire::IpAddress& group,
                       bool member);

int attach_mcast(CommandContext& context, ClientId client, const abi::Request::Body& in);
int detach_mcast(CommandContext& context, ClientId client, const abi::Request::Body& in);

}  // namespace rocemu::engine
