// A directory that goes with its owner, and all that is in it.
#pragma once

#include <filesystem>

namespace rocemu {

class TemporaryDirectory {
 public:
  /// Below $TMPDIR, or /tmp. Throws std::system_error.
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace rocemu
