// Control requests: creating, changing and destroying objects. What a request may hold wrongly is
// the application's mistake and answered with the errno its man page names.
#pragma once

#include "emulator/engine/verbs/command_context.h"

namespace rocemu::engine {

abi::Reply execute(CommandContext& context, ClientId client, const abi::Request& request);

}  // namespace rocemu::engine
