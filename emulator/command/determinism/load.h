// Loads the machine with processes that compete for the processors.
#pragma once

#include <sys/types.h>

#include <vector>

namespace rocemu::command {

class Load {
 public:
  /// Starts twice as many busy processes as there are processors. They run until this object is
  /// destroyed.
  Load();
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

 private:
  void end();

  std::vector<pid_t> processes_;
};

}  // namespace rocemu::command
