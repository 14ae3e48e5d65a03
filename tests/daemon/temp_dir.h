// A directory for a test, which is removed together with this object.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace rocemu::daemon {

class TempDir {
 public:
  TempDir() {
    // The name is short, since paths of sockets in the directory are limited to 107 bytes.
    std::string name = std::filesystem::temp_directory_path() / "rocemu-test-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "mkdtemp failed";
    path_ = name;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace rocemu::daemon
