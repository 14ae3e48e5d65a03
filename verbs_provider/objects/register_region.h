// Registers memory with the daemon, for all verbs that make an MR.
#pragma once

#include "emulator/abi/control.h"
#include "verbs_provider/structs/mr.h"

namespace rocemu::provider {

/// Has the daemon register what `wanted` says, for `pd`, and fills all of the ibv_mr but its
/// address and length. Null with errno set if it refuses.
Mr* register_region(ibv_pd* pd, const decltype(abi::Request::Body::reg_mr)& wanted, MrType type);

}  // namespace rocemu::provider
