#include "emulator/command/daemons/become_daemon.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "emulator/abi/runtime_dir.h"
#include "emulator/command/programs/installation.h"
#include "emulator/daemon/daemon_main.h"
#include "emulator/os/process_title.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::command {
namespace {

/// Returns whether this process has only one thread. Otherwise another thread could hold a lock
/// during fork(), and in the child that lock would never be released.
bool has_one_thread() {
  struct stat status;  // of a directory, which has a link for each entry and for "." and ".."
  return stat("/proc/self/task", &status) == 0 && status.st_nlink == 3;
}

/// Returns whether the file is an ELF executable that gains no privileges when it is executed. A
/// script, for example, would run something else first.
bool is_plain_executable(const std::string& path) {
  if (access(path.c_str(), X_OK) != 0) return false;
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status;
  if (!file || fstat(file.get(), &status) != 0 || (status.st_mode & (S_ISUID | S_ISGID)) != 0)
    return false;
  if (fgetxattr(file.get(), "security.capability", nullptr, 0) >= 0) return false;
  char magic[4];
  return read(file.get(), magic, sizeof magic) == sizeof magic && std::memcmp(magic,
                                                                              "\x7f"
                                                                              "ELF",
                                                                              sizeof magic) == 0;
}

/// Returns whether libraries are preloaded. They are meant for programs, and would stay in the
/// daemon.
bool has_preloaded_libraries() {
  const char* const preload = std::getenv("LD_PRELOAD");
  return preload != nullptr && *preload != '\0';
}

/// Runs the daemon, and returns its exit status. Is noexcept, because rocemu's exception handlers
/// must not handle the daemon's exceptions.
int run_daemon(const std::vector<const char*>& argv) noexcept {
  return daemon::daemon_main(static_cast<int>(argv.size()) - 1, argv.data());
}

}  // namespace

bool may_continue_as_daemon(const std::string& path) {
  // A sanitizer would include rocemu's memory in the reports that it makes when the daemon exits.
  return !is_sanitizer_build() && !has_preloaded_libraries() && getauxval(AT_SECURE) == 0 &&
         has_one_thread() && is_plain_executable(path);
}

void continue_as_daemon(const std::vector<std::string>& arguments) {
  if (!set_process_title(arguments)) return;
  unsetenv("LD_PRELOAD");
  unsetenv(abi::kDirVariable);
  std::vector<const char*> argv;
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  argv.push_back(nullptr);
  // _exit() neither flushes buffers nor destroys static objects: the parent does both.
  _exit(run_daemon(argv));
}

}  // namespace rocemu::command
