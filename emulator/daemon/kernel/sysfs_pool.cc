#include "emulator/daemon/kernel/sysfs_pool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "emulator/abi/runtime_dir.h"
#include "emulator/daemon/base/start_error.h"
#include "emulator/daemon/kernel/file_tree.h"

namespace rocemu::daemon {
namespace {

class Hash {
 public:
  void add(std::string_view text) { add(uint64_t{std::hash<std::string_view>{}(text)}); }
  void add(uint64_t value) {  // the finalizer of SplitMix64
    value_ += value + 0x9e3779b97f4a7c15;
    value_ = (value_ ^ (value_ >> 30)) * 0xbf58476d1ce4e5b9;
    value_ = (value_ ^ (value_ >> 27)) * 0x94d049bb133111eb;
    value_ ^= value_ >> 31;
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0;
};

uint64_t nanoseconds_of(const timespec& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

/// Returns the time that a change would have now as its ctime, or an earlier one: the time of the
/// clock's latest tick.
uint64_t tick_now() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return nanoseconds_of(now);
}

/// Returns the beginning of the names of trees with these files.
std::string prefix_of(const std::vector<SysfsFile>& files) {
  Hash hash;
  for (const SysfsFile& file : files) {
    hash.add(file.path);
    hash.add(file.content);
    hash.add(uint64_t{file.is_link});
  }
  return fmt::format("{:016x}-", hash.value());
}

/// Returns the paths of all directories below the root in which the files are.
std::vector<std::string> directories_of(const std::vector<SysfsFile>& files) {
  std::unordered_set<std::string_view> seen;
  std::vector<std::string> paths;
  for (const SysfsFile& file : files) {
    std::string_view path = file.path;
    for (size_t slash; (slash = path.rfind('/')) != std::string_view::npos;) {
      path = path.substr(0, slash);
      if (!seen.insert(path).second) break;
      paths.emplace_back(path);
    }
  }
  std::ranges::sort(paths);
  return paths;
}

/// The state of a tree's files, as far as a change of any of them would show in it.
class TreeState {
 public:
  /// Returns the state of the tree below `root`; nothing if the tree lacks one of the files, or if
  /// equal files are not the same inode, so that a change might not show.
  static std::optional<TreeState> of(int root, const std::vector<SysfsFile>& files) {
    TreeState state;
    if (!state.add_root(root)) return std::nullopt;
    for (const std::string& path : directories_of(files))
      if (!state.add(root, path, S_IFDIR, 0)) return std::nullopt;
    std::map<std::string_view, std::pair<const std::string*, uint64_t>> regular;  // by contents
    for (const SysfsFile& file : files)
      if (!file.is_link) ++regular.try_emplace(file.content, &file.path, 0).first->second.second;
    for (const auto& [content, one] : regular)
      if (!state.add(root, *one.first, S_IFREG, one.second)) return std::nullopt;
    return state;  // a link cannot be changed: another one has another directory entry
  }

  std::string text() const { return fmt::format("{:016x}-{:x}", hash_.value(), latest_ctime_); }

 private:
  /// Adds the root. Its ctime is left out, because moving the tree changes it.
  bool add_root(int root) {
    struct stat status {};
    if (fstat(root, &status) != 0) return false;
    hash_.add(uint64_t{status.st_ino});
    hash_.add(uint64_t{status.st_mode});
    hash_.add(nanoseconds_of(status.st_mtim));
    std::vector<std::string> names;
    for (DirectoryEntry& entry : entries_of(open_directory(root, ".")))
      names.push_back(std::move(entry.name));
    std::ranges::sort(names);
    for (const std::string& name : names) hash_.add(name);
    return true;
  }

  /// Adds a file of the given type. `links` is its number of links, 0 for any.
  bool add(int root, const std::string& path, mode_t type, uint64_t links) {
    struct stat status {};
    if (fstatat(root, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        (status.st_mode & S_IFMT) != type || (links != 0 && status.st_nlink != links))
      return false;
    hash_.add(uint64_t{status.st_ino});
    hash_.add(uint64_t{status.st_mode});
    hash_.add(uint64_t{status.st_uid});
    hash_.add(uint64_t{status.st_nlink});
    const uint64_t ctime = nanoseconds_of(status.st_ctim);
    hash_.add(ctime);
    latest_ctime_ = std::max(latest_ctime_, ctime);
    return true;
  }

  Hash hash_;
  uint64_t latest_ctime_ = 0;
};

/// Returns the latest ctime in the name of a tree; nothing if the name has none.
std::optional<uint64_t> ctime_in(std::string_view name) {
  const size_t end = name.rfind('-');
  if (end == std::string_view::npos || end == 0) return std::nullopt;
  const size_t begin = name.rfind('-', end - 1);
  if (begin == std::string_view::npos) return std::nullopt;
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(name.data() + begin + 1, name.data() + end, value, 16);
  if (error != std::errc() || stop != name.data() + end) return std::nullopt;
  return value;
}

}  // namespace

SysfsPool::SysfsPool(std::string path)
    : path_(std::move(path)), directory_(open_directory(AT_FDCWD, path_.c_str())) {}

bool SysfsPool::take(int runtime_directory, std::vector<SysfsFile> files) {
  files_ = std::move(files);
  if (!directory_) return false;
  const std::string prefix = prefix_of(files_);
  const uint64_t now = tick_now();
  for (const DirectoryEntry& entry : entries_of(open_directory(directory_.get(), "."))) {
    if (!entry.name.starts_with(prefix)) continue;
    if (const auto ctime = ctime_in(entry.name); !ctime || *ctime >= now) continue;
    // This fails if another NIC has taken it.
    if (renameat(directory_.get(), entry.name.c_str(), runtime_directory, abi::kSysDir) != 0)
      continue;
    UniqueFd root = open_directory(runtime_directory, abi::kSysDir);
    if (!root) continue;
    const auto state = TreeState::of(root.get(), files_);
    if (state && entry.name.starts_with(prefix + state->text() + "-")) {
      taken_ = entry.name;
      return true;
    }
    fchmod(root.get(), 0700);
    if (!remove_contents(std::move(root))) return false;
  }
  return false;
}

void SysfsPool::give(int runtime_directory) {
  if (!directory_ || files_.empty()) return;
  if (!taken_.empty() && !is_changed_) {
    renameat(runtime_directory, abi::kSysDir, directory_.get(), taken_.c_str());
  } else {
    write_another();
  }
  files_.clear();
  remove_if_exploration_ended();
}

/// Removes the pool if no exploration has it locked. Several NICs may do this at the same time.
void SysfsPool::remove_if_exploration_ended() {
  if (flock(directory_.get(), LOCK_SH | LOCK_NB) != 0) return;
  remove_contents(open_directory(directory_.get(), "."));
  rmdir(path_.c_str());
}

void SysfsPool::write_another() const {
  const std::string unfinished = fmt::format("unfinished-{}", getpid());
  if (mkdirat(directory_.get(), unfinished.c_str(), 0700) != 0) return;
  UniqueFd root = open_directory(directory_.get(), unfinished.c_str());
  std::optional<TreeState> state;
  try {
    write_files(root.get(), files_);
    state = TreeState::of(root.get(), files_);
  } catch (const StartError&) {
    // There is no space left.
  }
  if (state) {
    const std::string name = fmt::format("{}{}-{}", prefix_of(files_), state->text(), getpid());
    if (renameat(directory_.get(), unfinished.c_str(), directory_.get(), name.c_str()) == 0) return;
  }
  remove_contents(std::move(root));
  unlinkat(directory_.get(), unfinished.c_str(), AT_REMOVEDIR);
}

}  // namespace rocemu::daemon
