#include "emulator/daemon/kernel/file_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "emulator/daemon/base/start_error.h"

namespace rocemu::daemon {
namespace {

/// Calls `use(name, is_directory)` for each entry of the open directory. With `is_small`, stops
/// after the first part that the kernel returns, which has all entries of a small directory.
/// Returns false on failure. The buffer is not on the stack, which may be small
/// (os/process_limits.h).
template <class Use>
bool for_each_entry(int directory, bool is_small, const Use& use) {
  constexpr size_t kBuffer = 8192;  // bytes: some 250 entries
  const auto buffer = std::make_unique_for_overwrite<char[]>(kBuffer);
  ssize_t size = 0;
  while ((size = syscall(SYS_getdents64, directory, buffer.get(), kBuffer)) > 0) {
    for (ssize_t at = 0; at < size;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(buffer.get() + at);
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") use(entry->d_name, entry->d_type == DT_DIR);
      at += entry->d_reclen;
    }
    if (is_small) return true;
  }
  return size == 0;
}

bool remove_entries(int directory, bool is_small);

/// Removes the directory `name` with its contents.
bool remove_directory(int parent, const char* name) {
  // Most directories are small. If this one is not, removing it fails first.
  for (const bool is_small : {true, false}) {
    const UniqueFd directory = open_directory(parent, name);
    if (!directory) return false;
    remove_entries(directory.get(), is_small);
    if (unlinkat(parent, name, AT_REMOVEDIR) == 0) return true;
  }
  return false;
}

bool remove_entries(int directory, bool is_small) {
  bool all = true;
  const bool has_read =
      for_each_entry(directory, is_small, [&](const char* name, bool is_directory) {
        if (is_directory || unlinkat(directory, name, 0) != 0)
          all &= remove_directory(directory, name);
      });
  return all && has_read;
}

std::string_view directory_in(const std::string& path) {
  const size_t slash = path.rfind('/');
  return std::string_view(path).substr(0, slash == std::string::npos ? 0 : slash);
}

}  // namespace

UniqueFd open_directory(int parent, const char* name) {
  return UniqueFd(openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

std::vector<DirectoryEntry> entries_of(UniqueFd directory) {
  std::vector<DirectoryEntry> entries;
  for_each_entry(directory.get(), /*is_small=*/false, [&](const char* name, bool is_directory) {
    entries.push_back({name, is_directory});
  });
  return entries;
}

bool remove_contents(UniqueFd directory) {
  return remove_entries(directory.get(), /*is_small=*/false);
}

int FilesBelow::directory_of(const std::string& path) {
  const std::string_view parent = std::string_view(path).substr(0, path.rfind('/'));
  if (path.find('/') == std::string::npos) return root_;
  if (here_ && parent == path_here_) return here_.get();
  make_parents(path);
  path_here_ = parent;
  here_ = open_directory(root_, path_here_.c_str());
  if (!here_) fail_start("cannot open " + path_here_, errno);
  return here_.get();
}

void FilesBelow::make_parents(const std::string& path) {
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

bool write_new(int directory, const char* name, const SysfsFile& file) {
  if (file.is_link) return symlinkat(file.content.c_str(), directory, name) == 0;
  const UniqueFd fd(
      openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400));
  return fd && write(fd.get(), file.content.data(), file.content.size()) ==
                   static_cast<ssize_t>(file.content.size());
}

void write_files(int root, const std::vector<SysfsFile>& files) {
  FilesBelow below(root);
  // Most files and links have the same contents as another one, usually in the same directory.
  std::map<std::pair<bool, std::string_view>, const std::string*> latest;
  for (const SysfsFile& file : files) {
    const int directory = below.directory_of(file.path);
    const char* const name = FilesBelow::name_of(file.path);
    const std::string*& same = latest[{file.is_link, file.content}];
    const std::string* const other = std::exchange(same, &file.path);
    if (other != nullptr) {
      const bool is_beside = directory_in(*other) == directory_in(file.path);
      // This fails if the file system has no hard links, or if the file has too many.
      if (linkat(is_beside ? directory : root,
                 is_beside ? FilesBelow::name_of(*other) : other->c_str(), directory, name, 0) == 0)
        continue;
    }
    if (!write_new(directory, name, file)) fail_start("cannot write " + file.path, errno);
  }
}

}  // namespace rocemu::daemon
