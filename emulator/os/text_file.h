// Reads whole text files that a user names. Any name may be given, such as that of a directory or
// of /dev/zero.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace rocemu {

/// A file that cannot be read. Its text names the file, the reason and the remedy.
class TextFileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct TextFileKind {
  const char* noun;  // for messages, such as "scenario"
  size_t most_bytes = size_t{1} << 20;
  /// If true, the file is read several times, for example by the daemon too. So it cannot be a
  /// pipe.
  bool is_read_again = false;
};

/// Returns the contents. Waits for the writer of a FIFO. Throws TextFileError.
std::string read_text_file(const std::string& path, const TextFileKind& kind);

}  // namespace rocemu
