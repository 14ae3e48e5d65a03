// The directory of the sysfs trees that the NICs of an exploration pass on to each other
// (daemon/kernel/sysfs_pool.h). It is next to the runtime directories of private NICs, since
// rename(2) works only within a file system.
#pragma once

#include <string>

#include "emulator/os/unique_fd.h"

namespace rocemu::command {

class SysfsPoolDirectory {
 public:
  /// Creates the directory. If that fails, there is no pool, and each NIC writes its own tree. Also
  /// removes the directories of explorations that were killed.
  SysfsPoolDirectory();
  ~SysfsPoolDirectory();
  SysfsPoolDirectory(const SysfsPoolDirectory&) = delete;
  SysfsPoolDirectory& operator=(const SysfsPoolDirectory&) = delete;

  /// In a child process that makes a run: lets the run's NIC use the pool. Releases the child's
  /// share of the lock, which must show only whether the exploration is alive.
  void use_in_child();

 private:
  std::string path_;  // empty if there is no pool
  UniqueFd lock_;
};

/// Returns the pool for the NICs that this process starts; empty for none.
const std::string& sysfs_pool_of_runs();

}  // namespace rocemu::command
