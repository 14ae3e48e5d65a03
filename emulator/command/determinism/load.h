// Processes that compete for the processors while this object exists.
#pragma once

#include <sys/types.h>

#include <vector>

namespace rocemu::command {

class Load {
 public:
  /// Starts twice as many processes as there are processors.
  Load();
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

 private:
  void end();

  std::vector<pid_t> processes_;
};

}  // namespace rocemu::command
