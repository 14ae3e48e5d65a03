// Sysfs trees that the NICs of an exploration pass on to each other (--sysfs-pool). All runs of
// `rocemu explore` need the same tree of some 500 files; creating and removing it would take a
// quarter of a NIC's processor time.
//
// A tree is either in the pool or belongs to one NIC: rename(2) moves it. A program may change its
// tree, so a NIC checks a tree before it uses it: no file may have been changed since the tree was
// written, while no program had access to it. Every change of a file sets its ctime, which no
// program can reset. The name of a tree in the pool has
//   - a hash of the paths and contents,
//   - a hash of the ctimes, inode numbers, modes and link counts,
//   - the latest ctime. A change in the same tick of the clock would not be noticed, so a NIC takes
//     a tree only in a later one.
//
// The exploration holds a lock on the pool. If it was killed, the last NIC removes the pool.
#pragma once

#include <string>
#include <vector>

#include "emulator/daemon/kernel/sysfs_files.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

class SysfsPool {
 public:
  explicit SysfsPool(std::string path);

  /// Moves a tree with exactly these files to abi::kSysDir in the directory, where an empty
  /// directory may be. Returns false if the pool has no such tree. The pool then gets one at the
  /// NIC's end.
  bool take(int runtime_directory, std::vector<SysfsFile> files);

  /// Returns the files that were given to take().
  const std::vector<SysfsFile>& files() const { return files_; }

  /// Records that the NIC itself has changed its tree, which therefore must not be passed on.
  void changed() { is_changed_ = true; }

  /// Returns the NIC's tree to the pool if the tree was taken from it and is unchanged; otherwise
  /// writes another tree. Errors are ignored, since the pool only saves time.
  void give(int runtime_directory);

 private:
  void remove_if_exploration_ended();
  void write_another() const;

  std::string path_;
  UniqueFd directory_;
  std::vector<SysfsFile> files_;  // of the NIC's tree when it started; empty if it has none
  std::string taken_;             // the name of the NIC's tree in the pool; empty if it is new
  bool is_changed_ = false;
};

}  // namespace rocemu::daemon
