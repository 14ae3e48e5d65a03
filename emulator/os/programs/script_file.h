// Reads the "#!" line of a script, as execve(2) does.
#pragma once

#include <optional>
#include <string>

namespace rocemu {

struct Script {
  /// The first word of the line, which the kernel executes.
  std::string interpreter;
  /// The program that runs the script: the interpreter, or, if that is env, the program that env
  /// runs. Empty if env has no argument.
  std::string program;
  /// If true, env searches `program` in the unchanged PATH, because the line has no option or
  /// variable that could change the search.
  bool is_found_by_env = false;
};

/// Reads the first line of the file. Returns nothing if the file cannot be read, or has no "#!"
/// line that names a program.
std::optional<Script> read_script(const std::string& path);

}  // namespace rocemu
