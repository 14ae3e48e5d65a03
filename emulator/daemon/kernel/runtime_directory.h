// The runtime directory of abi/runtime_dir.h, created at the start and removed at the end. A lock
// on the directory itself shows that its daemon is alive. So the directory of a killed daemon can
// be distinguished from one in use, and two daemons cannot both clean up.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "emulator/daemon/kernel/sysfs_files.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

class RuntimeDirectory {
 public:
  /// Creates `path` (and its parent, if that is missing) for `device_count` devices, numbered from
  /// `first_number`; only the user can access it. Throws StartError if the directory belongs to
  /// another user or a living daemon, or is no runtime directory.
  RuntimeDirectory(std::string path, size_t device_count, size_t first_number = 0);
  ~RuntimeDirectory() { remove(); }
  RuntimeDirectory(const RuntimeDirectory&) = delete;
  RuntimeDirectory& operator=(const RuntimeDirectory&) = delete;

  /// Hides the machine's own RDMA devices from programs.
  void hide_real_devices();
  /// Shows programs these files of the machine's /dev/infiniband.
  void show_nodes(const std::vector<std::string>& names);

  void write_sysfs(const std::vector<SysfsFile>& files);

  /// Replaces the contents of a file; a reader sees either the old or the new contents. The
  /// directory of a device itself does not change, since libibverbs identifies it by its
  /// modification time. Returns false with errno set if the file system has no space.
  bool replace_sysfs(const SysfsFile& file);

  /// Removes a link of the sysfs tree, or a directory with all its contents. Like the socket of a
  /// device it may have been removed already; returns false if it cannot be removed.
  bool remove_sysfs(const std::string& path);
  void remove_device_socket(size_t index);

  const std::string& path() const { return path_; }
  std::string device_socket(size_t index) const;
  std::string cm_socket() const;
  std::string control_socket() const;
  std::string netlink_socket() const;
  std::string turns_socket() const;
  std::string sysfs_socket() const;

  /// Returns whether files of an ended daemon were removed from it.
  bool was_stale() const { return was_stale_; }

  /// Removes the directory with its contents, and the parent if that is a BASE and now empty.
  /// Follows no symbolic link.
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
