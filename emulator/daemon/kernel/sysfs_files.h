// The files of a directory tree like /sys
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rocemu::daemon {

struct SysfsFile {
  std::string path;     // below the sysfs root
  std::string content;  // the target of a symbolic link
  bool is_link = false;
};

/// Collects the files of a directory tree.
class SysfsFiles {
 public:
  /// Adds a file with one line of text.
  void add(std::string path, std::string_view content);
  void add_binary(std::string path, std::string content);
  /// Adds a link to another path of the tree. The link is relative, like those of the kernel.
  void link(const std::string& path, const std::string& to);
  /// Adds a link to a file of the machine. `to` is its absolute path.
  void link_outside(std::string path, std::string to);
  void append(std::vector<SysfsFile> files);

  std::vector<SysfsFile> take() { return std::move(files_); }

 private:
  std::vector<SysfsFile> files_;
};

}  // namespace rocemu::daemon
