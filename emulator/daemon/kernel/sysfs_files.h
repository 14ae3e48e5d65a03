// The files of a tree below /sys
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

/// Collects the files of a tree.
class SysfsFiles {
 public:
  /// Adds a line of text.
  void add(std::string path, std::string_view content);
  void add_binary(std::string path, std::string content);
  /// Adds a link to another place of the tree, which is relative like the kernel's.
  void link(const std::string& path, const std::string& to);
  /// Adds a link to a file of the machine, by its absolute name.
  void link_outside(std::string path, std::string to);
  void append(std::vector<SysfsFile> files);

  std::vector<SysfsFile> take() { return std::move(files_); }

 private:
  std::vector<SysfsFile> files_;
};

}  // namespace rocemu::daemon
