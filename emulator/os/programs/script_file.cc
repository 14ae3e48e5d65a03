#include "emulator/os/programs/script_file.h"

#include <algorithm>
#include <fstream>

namespace rocemu {
namespace {

/// The kernel searches only this number of bytes at the beginning of a file for the "#!" line
/// (BINPRM_BUF_SIZE).
constexpr std::streamsize kMaxLine = 256;

}  // namespace

std::optional<Script> read_script(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line(kMaxLine, '\0');
  file.read(line.data(), kMaxLine);
  line.resize(static_cast<size_t>(file.gcount()));
  if (!line.starts_with("#!")) return std::nullopt;
  line.resize(std::min(line.find('\n'), line.size()));

  // Only spaces and tabs separate words for the kernel: a carriage return is part of a name.
  size_t at = 2;
  const auto next_word = [&] {
    const size_t begin = std::min(line.find_first_not_of(" \t", at), line.size());
    at = std::min(line.find_first_of(" \t", begin), line.size());
    return line.substr(begin, at - begin);
  };
  Script script{.interpreter = next_word(), .program = {}};
  if (script.interpreter.empty()) return std::nullopt;
  if (script.interpreter.substr(script.interpreter.rfind('/') + 1) != "env") {
    script.program = script.interpreter;
    return script;
  }
  bool splits = false, is_plain = true;
  for (std::string word = next_word(); !word.empty(); word = next_word()) {
    if (word == "-S") {
      splits = true;
    } else if (word.starts_with("-") || word.find('=') != std::string::npos) {
      is_plain = false;
    } else {
      script.program = word;
      // Without -S, env takes all words together as one program name, and reports that it does not
      // exist.
      script.is_found_by_env = is_plain && (splits || next_word().empty());
      break;
    }
  }
  return script;
}

}  // namespace rocemu
