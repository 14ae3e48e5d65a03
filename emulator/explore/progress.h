// Prints the progress of an exploration to standard error: a bar on a terminal, else a line from
// time to time.
#pragma once

#include <chrono>
#include <cstddef>

namespace rocemu::explore {

class Progress {
 public:
  explicit Progress(size_t total, size_t done);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(bool is_bad);

 private:
  using Clock = std::chrono::steady_clock;

  void show(Clock::time_point now);

  size_t total_, done_, begun_with_, bad_ = 0;
  bool terminal_;
  Clock::time_point since_, shown_;
};

}  // namespace rocemu::explore
