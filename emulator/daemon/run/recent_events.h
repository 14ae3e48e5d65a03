// The latest frames and completions, which the report of a hang shows
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "emulator/engine/events.h"

namespace rocemu::daemon {

class RecentEvents {
 public:
  void add(const engine::FrameTrace& trace);
  void add(engine::Instant at, const engine::Completion& completion);

  /// Returns a line for each frame, the oldest frame first.
  std::vector<std::string> frames() const;
  std::vector<std::string> completions() const;

 private:
  struct RecentFrame {
    engine::Instant at;
    std::vector<uint8_t> bytes;
  };
  struct RecentCompletion {
    engine::Instant at;
    engine::Completion completion;
  };

  std::deque<RecentFrame> frames_;
  std::deque<RecentCompletion> completions_;
};

}  // namespace rocemu::daemon
