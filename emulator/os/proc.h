// Reads /proc (proc(5)).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rocemu::proc {

/// Returns the contents of the file; empty if it cannot be read, because the thread has ended or
/// may not be examined.
std::string contents_of(const std::string& path);
/// Returns the names in a directory that are numbers, in numeric order.
std::vector<pid_t> numbers_in(const std::string& directory);
/// Sorts the ids of processes or threads from the oldest to the newest. `first` is the id of the
/// oldest. After the largest id, the kernel continues with small ones.
void sort_by_age(std::vector<pid_t>& numbers, pid_t first);
/// Returns whether the process ids in /proc are those of our PID namespace.
bool is_of_this_namespace();
/// Returns "/proc/12".
std::string directory_of(pid_t process);
/// Returns "/proc/12/fd/3".
std::string descriptor_path(pid_t process, int descriptor);
/// Returns the target of a symbolic link; empty if it cannot be read.
std::string link_at(const std::string& path);
/// Returns the id of the parent process; 0 if the process has ended.
pid_t parent_of(pid_t process);
/// Returns the kernel's name for the process, which it truncates to 15 bytes; "?" if the process
/// has ended.
std::string name_of(pid_t process);
/// Returns the value of "Name:\tvalue" in a file such as status.
std::string field_of(const std::string& text, std::string_view name);
/// Returns whether the process has no main thread any more (pthread_exit(3)), and perhaps no thread
/// at all. The files in its directory that show memory and descriptors are then empty; those of its
/// other threads are not (proc_pid_task(5)).
bool has_main_thread_ended(pid_t process);
/// Returns the number in the link "socket:[123]" or "pipe:[123]"; nothing if the link is not of the
/// given kind.
std::optional<uint64_t> inode_in(const std::string& link, std::string_view kind);

/// Returns whether the signal is one that kills a program because of the program's own error.
bool is_crash(int signal);

}  // namespace rocemu::proc
