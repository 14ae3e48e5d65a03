// The runtime directory of abi/runtime_dir.h, which is created at the start and removed at the end.
// A lock on the directory itself shows that its daemon is alive. So a new daemon can distinguish
// the directory of a killed daemon from one in use, and two daemons cannot clean it up at the same
// time.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "emulator/daemon/kernel/sysfs_files.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

class RuntimeDirectory {
 public:
  /// Creates `path`, and its parent if that is missing, for `device_count` devices, which are
  /// numbered from `first_number`. Only the user can access the directory. Throws StartError if it
  /// belongs to another user or to a living daemon, or if it is not a runtime directory.
  RuntimeDirectory(std::string path, size_t device_count, size_t first_number = 0);
  ~RuntimeDirectory() { remove(); }
  RuntimeDirectory(const RuntimeDirectory&) = delete;
  RuntimeDirectory& operator=(const RuntimeDirectory&) = delete;

  /// Hides the machine's own RDMA devices from programs.
  void hide_real_devices();
  /// Makes these files of the machine's /dev/infiniband visible to programs.
  void show_nodes(const std::vector<std::string>& names);

  void write_sysfs(const std::vector<SysfsFile>& files);

  /// Replaces the contents of a file; a reader sees either the old or the new contents. The
  /// directory of a device itself stays unchanged, since libibverbs identifies the device by the
  /// directory's modification time. Returns false with errno set if the file system has no space.
  bool replace_sysfs(const SysfsFile& file);

  /// Removes a link of the sysfs tree, or a directory with all its contents. Returns false if it
  /// exists and cannot be removed.
  bool remove_sysfs(const std::string& path);
  void remove_device_socket(size_t index);

  const std::string& path() const { return path_; }
  std::string device_socket(size_t index) const;
  std::string cm_socket() const;
  std::string control_socket() const;
  std::string netlink_socket() const;
  std::string turns_socket() const;
  std::string sysfs_socket() const;

  /// Returns whether the directory contained files of an earlier daemon, which were removed.
  bool was_stale() const { return was_stale_; }

  /// Removes the directory with its contents. Also removes its parent if rocemu created that for
  /// runtime directories and it is now empty. Follows no symbolic links.
  void remove();

 private:
  UniqueFd open_sysfs() const;
  bool open_locked();
  bool clean();

  std::string path_;
  size_t first_number_;
  bool was_stale_ = false;
  UniqueFd directory_;  // holds the lock
};

}  // namespace rocemu::daemon
