#include "emulator/os/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "emulator/os/unique_fd.h"

namespace rocemu {
namespace {

constexpr size_t kChunk = 65536;

}  // namespace

std::string read_text_file(const std::string& path, const TextFileKind& kind) {
  const std::string noun = kind.noun;
  const auto fail = [&](const std::string& why) {
    throw TextFileError("cannot read the " + noun + " " + path + ": " + why);
  };
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) fail(std::strerror(errno));
  if (S_ISDIR(status.st_mode)) fail(std::strerror(EISDIR));
  if (kind.is_read_again && !S_ISREG(status.st_mode))
    fail("this is not a regular file, and rocemu reads it several times; copy it to a file");
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (file.get() < 0) fail(std::strerror(errno));
  std::string text;
  while (text.size() <= kind.most_bytes) {
    const size_t before = text.size();
    text.resize(before + kChunk);
    const ssize_t count = read(file.get(), text.data() + before, kChunk);
    text.resize(before + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) return text;
    if (count < 0 && errno != EINTR) fail(std::strerror(errno));
  }
  throw TextFileError(path + ": a " + noun + " has at most " + std::to_string(kind.most_bytes) +
                      " bytes");
}

}  // namespace rocemu
