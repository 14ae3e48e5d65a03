// How much memory one request of ibv_advise_mr(3) may have looked at: others wait meanwhile.
#pragma once

#include <cstdint>

namespace rocemu::abi {

/// With IBV_ADVISE_MR_FLAG_FLUSH, all SGEs of an Op::kAdviseMr together; the provider asks as often
/// as it needs.
inline constexpr uint64_t kMaxFlushedBytes = 16 << 20;

}  // namespace rocemu::abi
