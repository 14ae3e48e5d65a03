// What `rocemu run --processor N` says to the programs of a run that it keeps on one processor.
#pragma once

namespace rocemu::abi {

/// N, a colon, and the processors that the programs would have otherwise, as taskset(1) lists them:
/// "1:0-3,8".
inline constexpr char kProcessorsVariable[] = "ROCEMU_PROCESSORS";

}  // namespace rocemu::abi
