// The directory in a daemon's runtime directory (runtime_dir.h) that hides the machine's own RDMA
// devices from programs
#pragma once

namespace rocemu::abi {

/// The name of an empty directory in the runtime directory. Programs see this directory in place of
/// the directories of the machine's own RDMA devices. With --keep-real-devices the directory does
/// not exist.
inline constexpr char kHiddenDir[] = "hidden";

}  // namespace rocemu::abi
