// Reports programs that take no turns, because no library can be loaded into them or because they
// call the kernel without the C library. Each program is reported only once.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <set>
#include <string>

namespace rocemu::daemon {

class UnseenPrograms {
 public:
  /// Programs that `ancestor` starts directly are not reported, because `rocemu run` reports them.
  explicit UnseenPrograms(std::optional<pid_t> ancestor) : ancestor_(ancestor) {}

  /// Examines the program of the process. This costs little if the process executes the same
  /// program as at the latest check.
  void look_at(pid_t process);

 private:
  std::optional<pid_t> ancestor_;
  std::map<pid_t, std::string> programs_;
  std::set<std::string> told_;
};

}  // namespace rocemu::daemon
