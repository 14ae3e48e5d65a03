// The limit of the memory that one request for ibv_advise_mr(3) can name. It is small because other
// clients wait while the daemon checks the memory of a request.
#pragma once

#include <cstdint>

namespace rocemu::abi {

/// The maximum number of bytes in all SGEs of one Op::kAdviseMr with IBV_ADVISE_MR_FLAG_FLUSH. For
/// more bytes, the provider sends several requests.
inline constexpr uint64_t kMaxFlushedBytes = 16 << 20;

}  // namespace rocemu::abi
