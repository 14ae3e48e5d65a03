// Registers memory with the daemon, for all verbs that create an MR.
#pragma once

#include "emulator/abi/control.h"
#include "verbs_provider/structs/mr.h"

namespace rocemu::provider {

/// Makes the daemon register the memory in `wanted`, for `pd`, and fills in all of the ibv_mr
/// except its address and length. Returns null with errno set if the daemon refuses.
Mr* register_region(ibv_pd* pd, const decltype(abi::Request::Body::reg_mr)& wanted, MrType type);

}  // namespace rocemu::provider
