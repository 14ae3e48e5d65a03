// Explains why execve(2) refuses a program that exists. Its error number alone misleads: ENOENT
// ("No such file or directory") is also the error of a script whose interpreter is missing.
#pragma once

#include <optional>
#include <string>

namespace rocemu {

struct ExecRefusal {
  int error;        // what execve(2), or env(1), fails with
  std::string why;  // what is wrong with which file, and what helps
};

/// Returns why the file cannot run although it exists and has the permission: an interpreter of its
/// "#!" line, or a dynamic linker, that is missing or cannot be executed. Returns nothing if no
/// such reason is found.
std::optional<ExecRefusal> find_exec_refusal(const std::string& path);

/// Describes the error that execve(2) returned for an existing file.
std::string describe_exec_error(const std::string& path, int error);

}  // namespace rocemu
