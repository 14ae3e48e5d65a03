// Keeps a thread, and the threads that it starts in the meantime, on its current processor.
#pragma once

#include <sched.h>

#include <cstdint>

namespace rocemu::test {

class OneProcessor {
 public:
  OneProcessor() : number_(sched_getcpu()) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(number_), &one);
    sched_getaffinity(0, sizeof before_, &before_);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OneProcessor() { sched_setaffinity(0, sizeof before_, &before_); }
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;

  /// Returns the processor's number, from 0.
  uint32_t number() const { return static_cast<uint32_t>(number_); }

 private:
  int number_;
  cpu_set_t before_;
};

}  // namespace rocemu::test
