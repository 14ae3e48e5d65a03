// Writes and removes directory trees, without following symbolic links.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "emulator/daemon/kernel/sysfs_files.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

UniqueFd open_directory(int parent, const char* name);

struct DirectoryEntry {
  std::string name;
  bool is_directory;  // false also if the file system does not report the type
};

/// Returns the entries of the open directory, without "." and "..".
std::vector<DirectoryEntry> entries_of(UniqueFd directory);

/// Removes everything below the directory. Links are removed, and never followed.
bool remove_contents(UniqueFd directory);

/// Creates files below a directory. The directory of the latest file stays open, since its path is
/// long and the next file usually belongs there, too.
class FilesBelow {
 public:
  explicit FilesBelow(int root) : root_(root) {}

  /// Returns the parent directory of `path`, which it creates if it is missing. Throws StartError
  /// if that fails.
  int directory_of(const std::string& path);
  static const char* name_of(const std::string& path) {
    return path.c_str() + (path.rfind('/') + 1);  // npos + 1 is 0
  }

 private:
  void make_parents(const std::string& path);

  int root_;
  UniqueFd here_;
  std::string path_here_;
  std::set<std::string> made_;
};

/// Writes the contents of `file` to the new file `name` in the directory, wherever file.path is.
bool write_new(int directory, const char* name, const SysfsFile& file);

/// Writes all files below `root`. Equal contents, and equal links, are written once, and have
/// several names. Throws StartError if that fails.
void write_files(int root, const std::vector<SysfsFile>& files);

}  // namespace rocemu::daemon
