// A temporary directory that is removed, with all its contents, when its owner is destroyed
#pragma once

#include <filesystem>

namespace rocemu {

class TemporaryDirectory {
 public:
  /// Creates the directory below $TMPDIR, or /tmp. Throws std::system_error.
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace rocemu
