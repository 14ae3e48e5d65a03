// A directory that is removed with its owner, with all its contents
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
