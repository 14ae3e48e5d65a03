#include "emulator/os/temporary_directory.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>

namespace rocemu {

TemporaryDirectory::TemporaryDirectory() {
  std::error_code error;
  const std::string parent = std::filesystem::temp_directory_path(error).string();
  if (error) {
    const char* const given = std::getenv("TMPDIR");
    const std::string place = given != nullptr ? std::string("TMPDIR=") + given : "/tmp";
    throw std::runtime_error(place + " is not a directory (" + error.message() +
                             "); set TMPDIR to an existing directory for temporary files");
  }
  std::string name = parent + "/rocemu-XXXXXX";
  if (mkdtemp(name.data()) == nullptr)
    throw std::runtime_error("cannot make a temporary directory in " + parent + ": " +
                             std::strerror(errno) +
                             "; set TMPDIR to a directory with permission and space for files");
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace rocemu
