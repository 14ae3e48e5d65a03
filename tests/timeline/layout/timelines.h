// Timelines for tests, which are written step by step or made at random from a seed.
#pragma once

#include <cstdint>
#include <string>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

/// A timeline to which a test adds events in order.
class Written {
 public:
  explicit Written(uint32_t lanes = 2);

  Written& at(int64_t time_us);
  Written& verb(const std::string& text, uint32_t lane = 0);
  Written& failing_verb(const std::string& text, uint32_t lane = 0);
  Written& post(const std::string& text, uint32_t lane = 0);
  Written& completion(const std::string& text, uint32_t lane = 0);
  Written& frame(const std::string& text, uint32_t from, uint32_t to, int64_t flight_us = 1);
  Written& lost_frame(const std::string& text, uint32_t from, uint32_t to);
  Timeline take() const { return timeline_; }

 private:
  Happening& add(Kind kind, const std::string& text, uint32_t lane);
  Timeline timeline_;
  int64_t now_us_ = 0;
};

/// Returns a random timeline of a hundred events, with bursts, frames that overtake others, losses,
/// long texts, reasons, and equal rows.
Timeline by_chance(uint32_t seed);

}  // namespace rocemu::timeline
