// The directory that hides the machine's own RDMA devices, in a daemon's runtime directory
// (runtime_dir.h)
#pragma once

namespace rocemu::abi {

/// An empty directory below DIR, which replaces the directories of the machine's own RDMA devices
/// for programs. With --keep-real-devices it does not exist.
inline constexpr char kHiddenDir[] = "hidden";

}  // namespace rocemu::abi
