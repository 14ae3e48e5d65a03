#include "emulator/os/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "emulator/os/unique_fd.h"

namespace rocemu::proc {

std::string contents_of(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!fd) return text;
  char buffer[4096];
  for (ssize_t size; (size = read(fd.get(), buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(size));
  }
  return text;
}

std::vector<pid_t> numbers_in(const std::string& directory) {
  std::vector<pid_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> open_directory(opendir(directory.c_str()), closedir);
  if (open_directory == nullptr) return numbers;
  while (const dirent* entry = readdir(open_directory.get())) {
    char* end;
    const long value = std::strtol(entry->d_name, &end, 10);
    if (*end == '\0' && end != entry->d_name) numbers.push_back(static_cast<pid_t>(value));
  }
  std::ranges::sort(numbers);
  return numbers;
}

void sort_by_age(std::vector<pid_t>& numbers, pid_t first) {
  std::ranges::sort(numbers, {}, [first](pid_t number) {
    return static_cast<uint32_t>(number) - static_cast<uint32_t>(first);
  });
}

bool is_of_this_namespace() {
  return link_at("/proc/self") == std::to_string(getpid());
}

std::string directory_of(pid_t process) {
  return "/proc/" + std::to_string(process);
}

std::string descriptor_path(pid_t process, int descriptor) {
  return directory_of(process) + "/fd/" + std::to_string(descriptor);
}

std::string link_at(const std::string& path) {
  char target[512];
  const ssize_t size = readlink(path.c_str(), target, sizeof target);
  return size < 0 ? "" : std::string(target, static_cast<size_t>(size));
}

std::string name_of(pid_t process) {
  const std::string name = contents_of(directory_of(process) + "/comm");
  return name.empty() ? "?" : name.substr(0, name.find('\n'));
}

pid_t parent_of(pid_t process) {
  return std::atoi(field_of(contents_of(directory_of(process) + "/status"), "PPid").c_str());
}

std::string field_of(const std::string& text, std::string_view name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ':') continue;
    const size_t begin = line.find_first_not_of(" \t", name.size() + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

bool has_main_thread_ended(pid_t process) {
  const std::string state = field_of(contents_of(directory_of(process) + "/status"), "State");
  return state.empty() || state[0] == 'Z' || state[0] == 'X';
}

std::optional<uint64_t> inode_in(const std::string& link, std::string_view kind) {
  if (!link.starts_with(kind) || link.size() < kind.size() + 3 || link[kind.size()] != ':') {
    return std::nullopt;
  }
  return std::strtoull(link.c_str() + kind.size() + 2, nullptr, 10);
}

bool is_crash(int signal) {
  switch (signal) {
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGABRT:
    case SIGTRAP:
    case SIGSYS:
      return true;
    default:
      return false;
  }
}

}  // namespace rocemu::proc
