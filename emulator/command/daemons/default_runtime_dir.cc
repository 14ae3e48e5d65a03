#include "emulator/command/daemons/default_runtime_dir.h"

#include <dirent.h>
#include <linux/magic.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "emulator/abi/runtime_dir.h"
#include "emulator/command/base/error.h"

namespace rocemu::command {
namespace {

constexpr char kPrivatePrefix[] = "run-";

/// Returns the path of BASE in $XDG_RUNTIME_DIR; empty if that variable does not name a directory
/// of this user.
std::string base_of_user() {
  const char* const runtime_dir = std::getenv("XDG_RUNTIME_DIR");
  struct stat status;
  if (runtime_dir != nullptr && runtime_dir[0] == '/' && stat(runtime_dir, &status) == 0 &&
      S_ISDIR(status.st_mode) && status.st_uid == geteuid())
    return std::string(runtime_dir) + "/" + abi::kBaseInRuntimeDir;
  return "";
}

std::string base_in_tmp() {
  return abi::kBaseInTmp + std::to_string(geteuid());
}

std::string base_in_shared_memory() {
  return abi::kBaseInSharedMemory + std::to_string(geteuid());
}

/// Returns whether /dev/shm is a memory file system that has room for a runtime directory, and
/// whose files no program removes during a run.
bool is_shared_memory_usable() {
  constexpr uint64_t kEnough = 32 << 20;  // bytes: the need of 250 devices
  struct statfs file_system;
  if (statfs(abi::kSharedMemoryDir, &file_system) != 0 || file_system.f_type != TMPFS_MAGIC ||
      access(abi::kSharedMemoryDir, W_OK | X_OK) != 0)
    return false;
  const bool is_limited = file_system.f_blocks != 0;
  if (is_limited && file_system.f_bavail * static_cast<uint64_t>(file_system.f_bsize) < kEnough)
    return false;
  // When a user's last login session ends, systemd-logind removes that user's files in /dev/shm,
  // but never root's files (RemoveIPC= in logind.conf(5)).
  return geteuid() == 0 || access("/run/systemd/users", F_OK) != 0;
}

void append_private_dirs(const std::string& base, std::vector<std::string>& dirs) {
  if (!distrust_of_base(base).empty()) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(base.c_str()), closedir);
  if (!entries) return;
  while (const dirent* entry = readdir(entries.get()))
    if (std::string_view(entry->d_name).starts_with(kPrivatePrefix))
      dirs.push_back(base + "/" + entry->d_name);
}

}  // namespace

std::string base_dir() {
  const std::string base = base_of_user();
  return base.empty() ? base_in_tmp() : base;
}

// Prefers a directory in memory, because the sysfs tree has about 60 directories and 450 files. On
// a disk, creating and removing them may cost more than everything else that `rocemu run` does: in
// rmdir(), an ext4 without a journal discards the directory's block and waits for it.
std::string private_base_dir() {
  std::string base = base_of_user();
  if (!base.empty()) return base;
  if (is_shared_memory_usable() && distrust_of_base(base_in_shared_memory()).empty())
    return base_in_shared_memory();
  return base_in_tmp();
}

std::string distrust_of_base(const std::string& base) {
  struct stat status;
  if (lstat(base.c_str(), &status) != 0) return "";
  // In /tmp, another user may already have created a file or directory with this name.
  if (!S_ISDIR(status.st_mode)) return base + " is not a directory; remove it";
  if (status.st_uid != geteuid())
    return base + " belongs to user " + std::to_string(status.st_uid) +
           "; remove it, or set XDG_RUNTIME_DIR to a directory that you own";
  if ((status.st_mode & 077) != 0) return base + " is open to other users; chmod 700 " + base;
  return "";
}

void require_trust(const std::string& base) {
  if (const std::string distrust = distrust_of_base(base); !distrust.empty())
    throw Failure("the runtime directory cannot be used: " + distrust);
}

void create_base(const std::string& base) {
  if (mkdir(base.c_str(), 0700) == 0) {
    // The umask may have cleared permission bits. If another run ended and removed the directory
    // meanwhile, the daemon creates the directory again.
    if (chmod(base.c_str(), 0700) != 0 && errno != ENOENT)
      fail_with_errno("cannot change the runtime directory " + base, errno);
  } else if (errno != EEXIST) {
    fail_with_errno("cannot make the runtime directory " + base, errno);
  }
  require_trust(base);
}

std::string shared_dir() {
  return base_dir() + "/" + abi::kSharedName;
}

std::string new_private_dir(const std::string& base) {
  uint32_t random = 0;
  // Once the machine has booted, getrandom() with up to 256 bytes never blocks and never returns
  // fewer bytes.
  if (getrandom(&random, sizeof random, 0) != sizeof random)
    fail_with_errno("cannot get random bytes", errno);
  // The name has the same length for every PID. It is in the environment of programs, which lies
  // above their stacks; with another length, addresses would differ between two runs in lockstep.
  char name[64];
  std::snprintf(name, sizeof name, "/%s%07d-%08x", kPrivatePrefix, getpid(), random);
  return base + name;
}

std::vector<std::string> private_dirs() {
  std::vector<std::string> dirs;
  append_private_dirs(base_dir(), dirs);
  if (base_of_user().empty()) append_private_dirs(base_in_shared_memory(), dirs);
  std::ranges::sort(dirs);
  return dirs;
}

bool remove_remains(const std::string& dir) {
  std::error_code ignored;  // whatever cannot be removed was not ours
  const auto count = std::filesystem::remove_all(dir, ignored);
  return count > 0 && !ignored;
}

void remove_empty_base(const std::string& base) {
  rmdir(base.c_str());
}

bool fits_socket_address(const std::string& dir) {
  const std::string longest = dir + "/" + abi::kDeviceDir + "/" + abi::kDevicePrefix +
                              "249";  // there are at most 250 devices
  return longest.size() < sizeof(sockaddr_un::sun_path);
}

}  // namespace rocemu::command
