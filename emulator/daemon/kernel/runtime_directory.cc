#include "emulator/daemon/kernel/runtime_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <map>
#include <memory>
#include <set>
#include <string_view>

#include "emulator/abi/hidden_devices.h"
#include "emulator/abi/runtime_dir.h"
#include "emulator/daemon/base/start_error.h"
#include "emulator/daemon/base/unix_socket.h"

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

struct CloseDir {
  void operator()(DIR* dir) const { closedir(dir); }
};
using Directory = std::unique_ptr<DIR, CloseDir>;

UniqueFd open_directory(int parent, const char* name) {
  return UniqueFd(openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// Returns a list for the open directory, which takes over the descriptor; null on failure.
Directory list_of(UniqueFd fd) {
  DIR* const list = fdopendir(fd.get());
  if (list != nullptr) (void)fd.release();
  return Directory(list);
}

struct Entry {
  std::string name;
  bool is_directory;  // false also if the file system does not say
};

std::vector<Entry> entries_of(DIR* list) {
  std::vector<Entry> entries;
  while (const dirent* entry = list != nullptr ? readdir(list) : nullptr) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..")
      entries.push_back({std::string(name), entry->d_type == DT_DIR});
  }
  return entries;
}

/// Removes everything below the directory. Links are removed, and never followed.
bool remove_contents(UniqueFd directory) {
  const int fd = directory.get();
  const Directory list = list_of(std::move(directory));
  bool all = list != nullptr;
  for (const auto& [name, is_directory] : entries_of(list.get())) {
    if (!is_directory && unlinkat(fd, name.c_str(), 0) == 0) continue;
    UniqueFd below = open_directory(fd, name.c_str());
    all &=
        below && remove_contents(std::move(below)) && unlinkat(fd, name.c_str(), AT_REMOVEDIR) == 0;
  }
  return all;
}

std::string first_component(std::string_view path) {
  return std::string(path.substr(0, path.find('/')));
}

/// Creates files below a directory. The directory of the latest file stays open, since its path is
/// long and the next file usually belongs there, too.
class FilesBelow {
 public:
  explicit FilesBelow(int root) : root_(root) {}

  /// Returns the parent directory of `path`, which it creates if it is missing.
  int directory_of(const std::string& path) {
    const std::string_view parent = std::string_view(path).substr(0, path.rfind('/'));
    if (path.find('/') == std::string::npos) return root_;
    if (here_ && parent == path_here_) return here_.get();
    make_parents(path);
    path_here_ = parent;
    here_ = open_directory(root_, path_here_.c_str());
    if (!here_) fail_start("cannot open " + path_here_, errno);
    return here_.get();
  }
  static const char* name_of(const std::string& path) {
    return path.c_str() + (path.rfind('/') + 1);  // npos + 1 is 0
  }

 private:
  void make_parents(const std::string& path) {
    for (size_t slash = path.find('/'); slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
      std::string directory = path.substr(0, slash);
      if (made_.contains(directory)) continue;
      if (mkdirat(root_, directory.c_str(), 0700) != 0 && errno != EEXIST) {
        fail_start("cannot create " + directory, errno);
      }
      made_.insert(std::move(directory));
    }
  }

  int root_;
  UniqueFd here_;
  std::string path_here_;
  std::set<std::string> made_;
};

/// Writes the contents of `file` to the new file `name` in the directory, wherever file.path is.
bool write_new(int directory, const char* name, const SysfsFile& file) {
  if (file.is_link) return symlinkat(file.content.c_str(), directory, name) == 0;
  const UniqueFd fd(
      openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400));
  return fd && write(fd.get(), file.content.data(), file.content.size()) ==
                   static_cast<ssize_t>(file.content.size());
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
  const std::vector<Entry> entries =
      entries_of(list_of(open_directory(directory_.get(), ".")).get());
  if (entries.empty()) return true;
  const std::set<std::string> ours{first_component(abi::kDeviceDir),
                                   abi::kSysDir,
                                   abi::kHiddenDir,
                                   abi::kControlSocket,
                                   abi::kNetlinkSocket,
                                   abi::kSysfsSocket,
                                   abi::kTurnsSocket,
                                   abi::kPluginLink};
  for (const Entry& entry : entries) {
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
  FilesBelow below(root.get());
  // Most files have the same contents as another file. Equal contents are written once, and have
  // several names.
  std::map<std::string_view, const std::string*> path_of;
  for (const SysfsFile& file : files) {
    const int directory = below.directory_of(file.path);
    const char* const name = FilesBelow::name_of(file.path);
    if (!file.is_link) {
      const auto [first, is_new] = path_of.try_emplace(file.content, &file.path);
      // This fails if the file system has no hard links, or if the file has too many.
      if (!is_new && linkat(root.get(), first->second->c_str(), directory, name, 0) == 0) continue;
    }
    if (!write_new(directory, name, file)) fail_start("cannot write " + file.path, errno);
  }
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
