// Reading /proc (proc(5)).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rocemu::proc {

/// Empty if it cannot be read: the thread is gone, or may not be looked at.
std::string contents_of(const std::string& path);
/// The names in a directory that are numbers, in their order.
std::vector<pid_t> numbers_in(const std::string& directory);
/// Puts numbers of processes or threads into the order in which they were given out, of which
/// `first` was the first: after the largest the kernel begins with small ones again.
void sort_by_age(std::vector<pid_t>& numbers, pid_t first);
/// Returns whether the numbers in /proc are those of our PID namespace.
bool is_of_this_namespace();
/// "/proc/12"
std::string directory_of(pid_t process);
/// "/proc/12/fd/3"
std::string descriptor_path(pid_t process, int descriptor);
/// What a symbolic link says; empty if it cannot be read.
std::string link_at(const std::string& path);
/// 0 if it is gone.
pid_t parent_of(pid_t process);
/// Returns the name of the process's program as the kernel has it, cut after 15 bytes; "?" if the
/// process has ended.
std::string name_of(pid_t process);
/// The value of "Name:\tvalue" in a file such as status.
std::string field_of(const std::string& text, std::string_view name);
/// The number in "socket:[123]" or "pipe:[123]"; nothing if the link is of another kind.
std::optional<uint64_t> inode_in(const std::string& link, std::string_view kind);

/// True of the signals that end a program for a mistake of its own.
bool is_crash(int signal);

}  // namespace rocemu::proc
