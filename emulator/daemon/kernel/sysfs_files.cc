#include "emulator/daemon/kernel/sysfs_files.h"

#include <filesystem>
#include <iterator>
#include <utility>

namespace rocemu::daemon {

void SysfsFiles::add(std::string path, std::string_view content) {
  std::string line(content);
  line += '\n';
  add_binary(std::move(path), std::move(line));
}

void SysfsFiles::add_binary(std::string path, std::string content) {
  files_.push_back({.path = std::move(path), .content = std::move(content)});
}

void SysfsFiles::link(const std::string& path, const std::string& to) {
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  std::filesystem::path relative = std::filesystem::path(to).lexically_relative(directory);
  // Like in the kernel, a link to a directory above this one ends with the name of that directory.
  if (relative.filename() == "..") {
    relative = relative / ".." / std::filesystem::path(to).filename();
  }
  link_outside(path, relative);
}

void SysfsFiles::link_outside(std::string path, std::string to) {
  files_.push_back({.path = std::move(path), .content = std::move(to), .is_link = true});
}

void SysfsFiles::append(std::vector<SysfsFile> files) {
  files_.insert(files_.end(), std::make_move_iterator(files.begin()),
                std::make_move_iterator(files.end()));
}

}  // namespace rocemu::daemon
