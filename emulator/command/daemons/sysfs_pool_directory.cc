#include "emulator/command/daemons/sysfs_pool_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "emulator/command/daemons/default_runtime_dir.h"

namespace rocemu::command {
namespace fs = std::filesystem;
namespace {

constexpr char kPrefix[] = "sysfs-";

std::string pool_of_runs;

/// Opens and locks the directory of a pool. Returns no descriptor if a living exploration has it
/// locked, or if it has been removed.
UniqueFd lock_pool(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!fd || flock(fd.get(), LOCK_EX | LOCK_NB) != 0 || fstat(fd.get(), &status) != 0 ||
      status.st_nlink == 0)
    return {};
  return fd;
}

void remove_abandoned_pools(const std::string& base) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(base, error)) {
    if (!entry.path().filename().string().starts_with(kPrefix)) continue;
    if (const UniqueFd lock = lock_pool(entry.path())) remove_remains(entry.path());
  }
}

}  // namespace

SysfsPoolDirectory::SysfsPoolDirectory() {
  const std::string base = private_base_dir();
  if (!distrust_of_base(base).empty()) return;  // each run reports this
  remove_abandoned_pools(base);
  // Another run that ends may remove the base, and another exploration that starts may remove a
  // directory that is not locked yet.
  constexpr int kAttempts = 20;
  for (int attempt = 0; attempt < kAttempts && !lock_; ++attempt) {
    if (mkdir(base.c_str(), 0700) == 0) chmod(base.c_str(), 0700);
    std::string name = base + "/" + kPrefix + "XXXXXX";
    if (mkdtemp(name.data()) == nullptr) {
      if (errno == ENOENT) continue;
      return;
    }
    path_ = name;
    lock_ = lock_pool(path_);
    if (!lock_) remove_remains(std::exchange(path_, ""));
  }
}

SysfsPoolDirectory::~SysfsPoolDirectory() {
  if (path_.empty()) return;
  remove_remains(path_);
  remove_empty_base(fs::path(path_).parent_path());
}

void SysfsPoolDirectory::use_in_child() {
  pool_of_runs = path_;
  lock_.reset();
}

const std::string& sysfs_pool_of_runs() {
  return pool_of_runs;
}

}  // namespace rocemu::command
