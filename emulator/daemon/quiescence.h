// Whether all threads of some processes were asleep at one instant.
//
// A thread is looked at twice. If it was asleep both times and has not been switched to in between,
// it was asleep all the while; and between the end of the first look at all of them and the
// beginning of the second there is an instant at which that holds for every one.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace rocemu::daemon {

class Quiescence {
 public:
  /// With an ancestor, all its descendants but ourselves are looked at too.
  explicit Quiescence(std::optional<pid_t> ancestor);

  /// Looks at these processes and their descendants.
  bool is_quiet(const std::vector<pid_t>& clients);

  /// Some thread that was not asleep when is_quiet() looked last: "thread poller (tid 12) of pid
  /// 11"; empty if there was none. It is not looked at any more until it has slept.
  std::string give_up_on_running();

 private:
  struct Thread {
    std::string switches;  // the lines of /proc that count how often it was switched from
    std::vector<pid_t> children;
  };
  using Look = std::map<pid_t, Thread>;  // by thread

  void look(const std::vector<pid_t>& clients);
  void look_at(pid_t process, std::vector<pid_t>& more);

  std::optional<pid_t> ancestor_;
  Look last_, now_;
  bool all_asleep_ = false;
  std::set<pid_t> processes_;                     // of the look in progress
  std::vector<std::pair<pid_t, pid_t>> running_;  // process, thread
  std::set<pid_t> ignored_;                       // threads
};

}  // namespace rocemu::daemon
