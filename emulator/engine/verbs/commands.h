// The control requests: they create, modify, query and destroy objects. An invalid request is the
// application's mistake, and is answered with the errno that the man page names.
#pragma once

#include "emulator/engine/verbs/command_context.h"

namespace rocemu::engine {

abi::Reply execute(CommandContext& context, ClientId client, const abi::Request& request);

}  // namespace rocemu::engine
