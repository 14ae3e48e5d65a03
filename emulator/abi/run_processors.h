// The environment variable in which `rocemu run --processor N` passes the processors of the run to
// its programs, which it keeps on processor N
#pragma once

namespace rocemu::abi {

/// The value is N, a colon, and the processors on which the programs could run without the option,
/// in the format of taskset(1): "1:0-3,8".
inline constexpr char kProcessorsVariable[] = "ROCEMU_PROCESSORS";

}  // namespace rocemu::abi
