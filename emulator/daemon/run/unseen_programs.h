// Programs that take no turns, since nothing can be loaded into them or since they call the kernel
// without the C library: told of once each.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <set>
#include <string>

namespace rocemu::daemon {

class UnseenPrograms {
 public:
  /// Of what the ancestor started itself, `rocemu run` tells, which knew it before.
  explicit UnseenPrograms(std::optional<pid_t> ancestor) : ancestor_(ancestor) {}

  /// Cheap for a process that still executes the program that it did when it was looked at last.
  void look_at(pid_t process);

 private:
  std::optional<pid_t> ancestor_;
  std::map<pid_t, std::string> programs_;
  std::set<std::string> told_;
};

}  // namespace rocemu::daemon
