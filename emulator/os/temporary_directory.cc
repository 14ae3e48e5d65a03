#include "emulator/os/temporary_directory.h"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

namespace rocemu {

TemporaryDirectory::TemporaryDirectory() {
  std::string name = std::filesystem::temp_directory_path().string() + "/rocemu-XXXXXX";
  if (mkdtemp(name.data()) == nullptr)
    throw std::system_error(errno, std::generic_category(), "cannot make the directory " + name);
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace rocemu
