// The limit of memory that one request of ibv_advise_mr(3) checks, since other clients wait in this
// time.
#pragma once

#include <cstdint>

namespace rocemu::abi {

/// The limit with IBV_ADVISE_MR_FLAG_FLUSH for all SGEs of an Op::kAdviseMr together; the provider
/// sends as many requests as it needs.
inline constexpr uint64_t kMaxFlushedBytes = 16 << 20;

}  // namespace rocemu::abi
