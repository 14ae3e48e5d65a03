#include "emulator/daemon/kernel/runtime_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <set>
#include <string_view>

#include "emulator/abi/hidden_devices.h"
#include "emulator/abi/runtime_dir.h"
#include "emulator/daemon/base/start_error.h"
#include "emulator/daemon/base/unix_socket.h"
#include "emulator/daemon/kernel/file_tree.h"

namespace rocemu::daemon {
namespace {

std::string parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

/// Returns whether the path is that of a directory in which rocemu creates its runtime directories,
/// and nothing else.
bool is_base(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name == abi::kBaseInRuntimeDir ||
         "/tmp/" + name == fmt::format("{}{}", abi::kBaseInTmp, geteuid());
}

/// Creates the directory, and its parent if that is missing. Another daemon that ends at the same
/// time may remove the parent again.
void make_directory(const std::string& path) {
  constexpr int kAttempts = 20;  // each time another daemon would have to end at the wrong moment
  for (int attempt = 1; mkdir(path.c_str(), 0700) != 0 && errno != EEXIST; ++attempt) {
    if (errno != ENOENT || attempt == kAttempts) fail_start("cannot create " + path, errno);
    const std::string parent = parent_of(path);
    if (mkdir(parent.c_str(), 0700) == 0) {
      chmod(parent.c_str(), 0700);  // the umask may have taken rights from us
    } else if (errno != EEXIST) {
      fail_start("cannot create " + parent, errno);
    }
  }
}

std::string first_component(std::string_view path) {
  return std::string(path.substr(0, path.find('/')));
}

}  // namespace

RuntimeDirectory::RuntimeDirectory(std::string path, size_t device_count, size_t first_number)
    : path_(std::move(path)), first_number_(first_number) {
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  if (path_.empty()) throw UsageError("--dir: the name is empty");
  // A path that is too long is detected here, before the first socket is created.
  const std::string longest = device_socket(device_count - 1);
  if (longest.size() > kMaxSocketPath) {
    throw StartError(
        fmt::format("{} is too long for a runtime directory: the path of a socket "
                    "may have {} bytes, but {} has {}",
                    path_, kMaxSocketPath, longest, longest.size()));
  }
  while (!open_locked()) {
  }
  if (!clean()) {
    directory_.reset();  // not ours to remove
    throw StartError(path_ + " is not empty and not a runtime directory; give another directory");
  }
  // The mode is not set earlier, because a directory that is refused must stay unchanged.
  if (fchmod(directory_.get(), 0700) != 0) fail_start("chmod " + path_, errno);
  FilesBelow files(directory_.get());
  for (const char* directory : {abi::kDeviceDir, abi::kSysDir})
    files.directory_of(std::string(directory) + "/");
}

/// Opens and locks the directory. Returns false if the daemon that used it before has just removed
/// it.
bool RuntimeDirectory::open_locked() {
  make_directory(path_);
  directory_.reset(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory_) {
    if (errno == ENOENT) return false;
    const int error = errno == ELOOP ? ENOTDIR : errno;
    fail_start("cannot use " + path_ + " as a runtime directory", error);
  }
  const auto refuse = [this](const std::string& why) {
    directory_.reset();
    throw StartError(why);
  };
  struct stat held {};
  if (fstat(directory_.get(), &held) != 0) fail_start("fstat " + path_, errno);
  if (held.st_uid != geteuid()) {
    refuse(fmt::format("{} belongs to user {}, not to user {}", path_, held.st_uid, geteuid()));
  }
  if (flock(directory_.get(), LOCK_EX | LOCK_NB) != 0 || is_served(control_socket())) {
    refuse("a daemon already runs in " + path_);
  }
  struct stat named {};
  if (lstat(path_.c_str(), &named) != 0 || named.st_ino != held.st_ino ||
      named.st_dev != held.st_dev) {
    directory_.reset();
    return false;
  }
  return true;
}

bool RuntimeDirectory::clean() {
  const std::vector<DirectoryEntry> entries = entries_of(open_directory(directory_.get(), "."));
  if (entries.empty()) return true;
  const std::set<std::string> ours{first_component(abi::kDeviceDir),
                                   abi::kSysDir,
                                   abi::kHiddenDir,
                                   abi::kControlSocket,
                                   abi::kNetlinkSocket,
                                   abi::kSysfsSocket,
                                   abi::kTurnsSocket,
                                   abi::kPluginLink};
  for (const DirectoryEntry& entry : entries) {
    if (!ours.contains(entry.name)) return false;
  }
  was_stale_ = true;
  if (!remove_contents(open_directory(directory_.get(), "."))) {
    directory_.reset();
    throw StartError("cannot remove the files of an earlier daemon in " + path_);
  }
  return true;
}

void RuntimeDirectory::hide_real_devices() {
  if (mkdirat(directory_.get(), abi::kHiddenDir, 0700) != 0)
    fail_start("cannot create " + path_ + "/" + abi::kHiddenDir, errno);
}

void RuntimeDirectory::show_nodes(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const std::string node = fmt::format("{}/{}", abi::kDeviceDir, name);
    if (symlinkat(("/" + node).c_str(), directory_.get(), node.c_str()) != 0)
      fail_start("cannot create " + path_ + "/" + node, errno);
  }
}

void RuntimeDirectory::write_sysfs(const std::vector<SysfsFile>& files) {
  const UniqueFd root = open_sysfs();
  if (!root) fail_start("cannot open " + path_ + "/" + abi::kSysDir, errno);
  write_files(root.get(), files);
}

UniqueFd RuntimeDirectory::open_sysfs() const {
  return open_directory(directory_.get(), abi::kSysDir);
}

bool RuntimeDirectory::replace_sysfs(const SysfsFile& file) {
  constexpr char kNew[] = ".new";
  const UniqueFd root = open_sysfs();
  if (!root) return false;
  unlinkat(root.get(), kNew, 0);  // left by a failed attempt
  return write_new(root.get(), kNew, file) &&
         renameat(root.get(), kNew, root.get(), file.path.c_str()) == 0;
}

bool RuntimeDirectory::remove_sysfs(const std::string& path) {
  const UniqueFd root = open_sysfs();
  if (unlinkat(root.get(), path.c_str(), 0) == 0 || errno == ENOENT) return true;
  UniqueFd below = open_directory(root.get(), path.c_str());
  return below && remove_contents(std::move(below)) &&
         unlinkat(root.get(), path.c_str(), AT_REMOVEDIR) == 0;
}

void RuntimeDirectory::remove_device_socket(size_t index) {
  unlink(device_socket(index).c_str());
}

std::string RuntimeDirectory::device_socket(size_t index) const {
  return fmt::format("{}/{}/{}{}", path_, abi::kDeviceDir, abi::kDevicePrefix,
                     first_number_ + index);
}

std::string RuntimeDirectory::cm_socket() const {
  return fmt::format("{}/{}/{}", path_, abi::kDeviceDir, abi::kCmDevice);
}

std::string RuntimeDirectory::control_socket() const {
  return fmt::format("{}/{}", path_, abi::kControlSocket);
}

std::string RuntimeDirectory::turns_socket() const {
  return fmt::format("{}/{}", path_, abi::kTurnsSocket);
}

std::string RuntimeDirectory::netlink_socket() const {
  return fmt::format("{}/{}", path_, abi::kNetlinkSocket);
}

std::string RuntimeDirectory::sysfs_socket() const {
  return fmt::format("{}/{}", path_, abi::kSysfsSocket);
}

void RuntimeDirectory::remove() {
  if (!directory_) return;
  remove_contents(open_directory(directory_.get(), "."));
  struct stat held {};
  struct stat named {};
  const bool still_there = fstat(directory_.get(), &held) == 0 &&
                           lstat(path_.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
                           held.st_dev == named.st_dev;
  if (still_there && rmdir(path_.c_str()) == 0) {
    const std::string parent = parent_of(path_);
    if (is_base(parent)) rmdir(parent.c_str());  // fails while the base contains others
  }
  directory_.reset();
}

}  // namespace rocemu::daemon
