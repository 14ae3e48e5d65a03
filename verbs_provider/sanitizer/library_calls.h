// Functions of libibverbs and librdmacm that the provider does not see. Those here stand before
// them.
#pragma once

namespace rocemu::sanitizer {

/// Returns whether the program has cared for fork(), by ibv_fork_init() or the variables for it.
bool is_fork_protected();

}  // namespace rocemu::sanitizer
