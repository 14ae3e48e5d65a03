// The variable by which `rocemu run --processor N` informs the programs of a run that it keeps on
// one processor
#pragma once

namespace rocemu::abi {

/// The value is N, a colon, and the processors that the programs would have otherwise, in the
/// format of taskset(1): "1:0-3,8".
inline constexpr char kProcessorsVariable[] = "ROCEMU_PROCESSORS";

}  // namespace rocemu::abi
