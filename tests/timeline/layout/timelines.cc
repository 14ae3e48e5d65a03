#include "tests/timeline/layout/timelines.h"

#include <fmt/format.h>

#include <random>

namespace rocemu::timeline {

using std::chrono::microseconds;

Written::Written(uint32_t lanes) {
  timeline_.source = "written";
  for (uint32_t i = 0; i < lanes; ++i) {
    timeline_.lanes.push_back({.process = "program",
                               .pid = 100 + i,
                               .device = fmt::format("rocemu{}", i),
                               .type = "RC",
                               .qpn = 0x11 + i});
  }
}

Happening& Written::add(Kind kind, const std::string& text, uint32_t lane) {
  Happening& one = timeline_.happenings.emplace_back();
  one.at = engine::Instant(microseconds(now_us_));
  one.kind = kind;
  one.text = text;
  one.lane = lane;
  return one;
}

Written& Written::at(int64_t time_us) {
  now_us_ = time_us;
  return *this;
}
Written& Written::verb(const std::string& text, uint32_t lane) {
  add(Kind::kVerb, text, lane);
  return *this;
}
Written& Written::failing_verb(const std::string& text, uint32_t lane) {
  add(Kind::kVerb, text + " fails: EINVAL", lane).tone = Tone::kError;
  return *this;
}
Written& Written::post(const std::string& text, uint32_t lane) {
  add(Kind::kPost, text, lane);
  return *this;
}
Written& Written::completion(const std::string& text, uint32_t lane) {
  add(Kind::kCompletion, text, lane);
  return *this;
}
Written& Written::frame(const std::string& text, uint32_t from, uint32_t to, int64_t flight_us) {
  Happening& one = add(Kind::kFrame, text, from);
  one.to = to;
  one.flight = microseconds(flight_us);
  return *this;
}
Written& Written::lost_frame(const std::string& text, uint32_t from, uint32_t to) {
  frame(text, from, to);
  Happening& one = timeline_.happenings.back();
  one.lost = true;
  one.tone = Tone::kFault;
  one.reason = "dropped by rule 'lost'";
  return *this;
}

Timeline by_chance(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](uint32_t end) { return static_cast<uint32_t>(random() % end); };
  const auto words = [&](uint32_t most) {
    std::string text = "word";
    for (uint32_t i = below(most); i > 0; --i) text += fmt::format(" {:0{}d}", i, 1 + below(12));
    return text;
  };
  const uint32_t lanes = 1 + below(5);
  Written written(lanes);
  int64_t now = 0;
  for (int i = 0; i < 100; ++i) {
    if (below(3) == 0) now += 1 + below(4);
    written.at(now);
    const uint32_t lane = below(lanes), to = below(lanes);
    switch (below(8)) {
      case 0:
        written.verb("modify_qp to RTS", lane);
        break;
      case 1:
        written.post("post_recv wr 1", lane).post("post_recv wr 1", lane);
        break;
      case 2:
        written.completion(words(12), lane);
        break;
      case 3:
        written.lost_frame(words(12), lane, to);
        break;
      default:
        written.frame(words(12), lane, to, below(5) == 0 ? 60 : below(4));
    }
  }
  Timeline timeline = written.take();
  for (Happening& one : timeline.happenings) {
    if (below(4) == 0) one.reason = words(20);
    if (below(6) == 0) one.tone = Tone::kAgain;
  }
  return timeline;
}

}  // namespace rocemu::timeline
