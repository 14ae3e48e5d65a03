// Explains why execve(2) refuses a program that exists. The error number of execve(2) alone
// misleads: ENOENT ("No such file or directory") is also the error of a script whose interpreter is
// missing.
#pragma once

#include <optional>
#include <string>

namespace rocemu {

struct ExecRefusal {
  int error;        // the error of execve(2) or env(1)
  std::string why;  // names the file, what is wrong with it, and what to do
};

/// Returns the reason why the file cannot run although it exists and is executable: the interpreter
/// of its "#!" line or its dynamic linker is missing or is not executable. Returns nothing if the
/// reason is a different one.
std::optional<ExecRefusal> find_exec_refusal(const std::string& path);

/// Describes the error that execve(2) returned for an existing file.
std::string describe_exec_error(const std::string& path, int error);

}  // namespace rocemu
