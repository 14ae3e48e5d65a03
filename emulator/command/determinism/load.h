// Processes that take the processors away from others, for as long as the object lives.
#pragma once

#include <sys/types.h>

#include <vector>

namespace rocemu::command {

class Load {
 public:
  /// Twice as many as there are processors.
  Load();
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

 private:
  void end();

  std::vector<pid_t> processes_;
};

}  // namespace rocemu::command
