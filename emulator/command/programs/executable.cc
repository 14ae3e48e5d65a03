#include "emulator/command/programs/executable.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "emulator/command/base/error.h"
#include "emulator/os/programs/exec_refusal.h"

namespace rocemu::command {
namespace {

/// Returns 0, or the errno that explains why the file cannot be executed.
int execution_error(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  if (!S_ISREG(status.st_mode) || access(path.c_str(), X_OK) != 0) return EACCES;
  return 0;
}

/// Returns whether the path is on a file system that is mounted noexec. access(2) reports that
/// files on it cannot be executed.
bool is_noexec(const std::string& path) {
  struct statvfs file_system;
  return statvfs(path.c_str(), &file_system) == 0 && (file_system.f_flag & ST_NOEXEC) != 0;
}

[[noreturn]] void give_up(const std::string& name, int error) {
  if (error == ENOENT || error == ENOTDIR)
    throw Error(kExitNotFound, "cannot run '" + name + "': there is no such program");
  if (error == EACCES && is_noexec(name))
    throw Error(kExitNotExecutable,
                "cannot run '" + name +
                    "': its file system is mounted noexec; copy the file to another one, "
                    "or mount -o remount,exec");
  if (error == EISDIR)
    throw Error(kExitNotExecutable, "cannot run '" + name + "': it is a directory");
  if (error == EACCES)
    throw Error(kExitNotExecutable,
                "cannot run '" + name +
                    "': it is not a file that you may execute; if it is yours: chmod +x");
  throw Error(kExitNotExecutable,
              "cannot run '" + name + "': " + std::generic_category().message(error));
}

}  // namespace

std::string find_executable(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (const int error = execution_error(name); error != 0) give_up(name, error);
    return name;
  }
  const char* const variable = std::getenv("PATH");
  const std::string path = variable != nullptr ? variable : "/bin:/usr/bin";
  int error = ENOENT;
  for (size_t begin = 0; !name.empty() && begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const std::string dir = end == begin ? "." : path.substr(begin, end - begin);
    std::string candidate = dir + "/" + name;
    const int candidate_error = execution_error(candidate);
    if (candidate_error == 0) return candidate;
    if (candidate_error == EACCES) error = EACCES;
    begin = end + 1;
  }
  give_up(name, error);
}

std::string find_command(const std::string& name) {
  std::string path = find_executable(name);
  if (const auto refusal = find_exec_refusal(path))
    throw Error(refusal->error == ENOENT ? kExitNotFound : kExitNotExecutable,
                "cannot run '" + name + "': " + refusal->why);
  return path;
}

}  // namespace rocemu::command
