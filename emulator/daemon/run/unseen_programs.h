// Programs that take no turns, because no library can be loaded into them or because they call the
// kernel without the C library. Each is reported once.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <set>
#include <string>

namespace rocemu::daemon {

class UnseenPrograms {
 public:
  /// Does not report the command that the ancestor started, because `rocemu run` reports it.
  explicit UnseenPrograms(std::optional<pid_t> ancestor) : ancestor_(ancestor) {}

  /// Checks the process. This is cheap for a process that still executes the same program as at the
  /// latest check.
  void look_at(pid_t process);

 private:
  std::optional<pid_t> ancestor_;
  std::map<pid_t, std::string> programs_;
  std::set<std::string> told_;
};

}  // namespace rocemu::daemon
