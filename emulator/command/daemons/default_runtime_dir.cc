#include "emulator/command/daemons/default_runtime_dir.h"

#include <dirent.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "emulator/abi/runtime_dir.h"
#include "emulator/command/error.h"

namespace rocemu::command {
namespace {

constexpr char kPrivatePrefix[] = "run-";

}  // namespace

std::string base_dir() {
  const char* const runtime_dir = std::getenv("XDG_RUNTIME_DIR");
  struct stat status;
  if (runtime_dir != nullptr && runtime_dir[0] == '/' && stat(runtime_dir, &status) == 0 &&
      S_ISDIR(status.st_mode) && status.st_uid == geteuid())
    return std::string(runtime_dir) + "/" + abi::kBaseInRuntimeDir;
  return abi::kBaseInTmp + std::to_string(geteuid());
}

std::string distrust_of_base(const std::string& base) {
  struct stat status;
  if (lstat(base.c_str(), &status) != 0) return "";
  // In /tmp anybody may have made this name first.
  if (!S_ISDIR(status.st_mode)) return base + " is not a directory; remove it";
  if (status.st_uid != geteuid())
    return base + " belongs to user " + std::to_string(status.st_uid) +
           "; remove it, or set XDG_RUNTIME_DIR to a directory of your own";
  if ((status.st_mode & 077) != 0) return base + " is open to other users; chmod 700 " + base;
  return "";
}

void create_base(const std::string& base) {
  if (mkdir(base.c_str(), 0700) != 0 && errno != EEXIST)
    fail_with_errno("cannot make the runtime directory " + base, errno);
  if (const std::string distrust = distrust_of_base(base); !distrust.empty())
    throw Failure("the runtime directory cannot be used: " + distrust);
}

std::string shared_dir() {
  return base_dir() + "/" + abi::kSharedName;
}

std::string new_private_dir(const std::string& base) {
  uint32_t random = 0;
  // Up to 256 bytes never come short and never block once the machine is up.
  if (getrandom(&random, sizeof random, 0) != sizeof random)
    fail_with_errno("cannot get random bytes", errno);
  char name[64];
  std::snprintf(name, sizeof name, "/%s%d-%08x", kPrivatePrefix, getpid(), random);
  return base + name;
}

std::vector<std::string> private_dirs() {
  const std::string base = base_dir();
  std::vector<std::string> dirs;
  if (!distrust_of_base(base).empty()) return dirs;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(base.c_str()), closedir);
  if (!entries) return dirs;
  while (const dirent* entry = readdir(entries.get()))
    if (std::string_view(entry->d_name).starts_with(kPrivatePrefix))
      dirs.push_back(base + "/" + entry->d_name);
  std::ranges::sort(dirs);
  return dirs;
}

bool remove_remains(const std::string& dir) {
  std::error_code ignored;  // what cannot be removed was not ours
  const auto count = std::filesystem::remove_all(dir, ignored);
  return count > 0 && !ignored;
}

void remove_empty_base(const std::string& base) {
  rmdir(base.c_str());
}

bool fits_socket_address(const std::string& dir) {
  const std::string longest =
      dir + "/" + abi::kDeviceDir + "/" + abi::kDevicePrefix + "249";  // 250 devices at most
  return longest.size() < sizeof(sockaddr_un::sun_path);
}

}  // namespace rocemu::command
