#include "emulator/explore/files.h"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

namespace rocemu::explore {

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file)
    throw std::system_error(errno, std::generic_category(), "cannot write " + path.string());
}

std::string contents_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace rocemu::explore
