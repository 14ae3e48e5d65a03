// Adds to the frames of a recording what the engine recorded about them: why each was sent again,
// and what rules did to it. Each frame has a number, by which a rule names the frame that it acted
// on; nothing is inferred from the bytes or the time of a frame.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emulator/engine/base/frame_marks.h"
#include "emulator/timeline/model.h"

namespace rocemu::timeline {

/// A rule that acted on a frame. `lane` finds or makes the lane of the QP or device at which the
/// rule saw the frame.
struct FiredRule {
  engine::Instant at{};
  std::string rule;
  std::string subject;  // for people
  engine::FrameFault fault;
  std::function<uint32_t()> lane;
};

class FrameFacts {
 public:
  explicit FrameFacts(Timeline& timeline) : timeline_(timeline) {}

  /// Notes that a rule acted on a frame, which has been or will be drawn.
  void fired(FiredRule rule);
  /// Returns the lane of the first rule that acted on the frame, if there is one.
  std::optional<uint32_t> lane_of_rule(uint64_t number) const;
  /// Notes that the frame is that happening of the timeline. `asks` is true for a request that is
  /// answered by more than an ACK: a READ, an atomic.
  void drawn(const engine::FrameMarks& marks, size_t happening, bool asks);
  /// Adds a happening for each rule whose frame was not drawn: the recording ended before the frame
  /// continued. Call it after the last record.
  void add_undrawn();

 private:
  std::vector<std::string> texts_of(const engine::FrameMarks& marks, bool asks) const;
  const std::vector<FiredRule>& fired_on(uint64_t number) const;
  /// Returns how many frames that were sent later between the same lanes overtook the frame.
  size_t overtakers(const engine::FrameMarks& marks, const Happening& frame);

  Timeline& timeline_;
  std::map<uint64_t, std::vector<FiredRule>> fired_;                        // by the frame's number
  std::map<uint64_t, size_t> drawn_;                                        // the same
  std::map<std::pair<uint32_t, uint32_t>, std::vector<uint64_t>> numbers_;  // by lanes; ascending
};

}  // namespace rocemu::timeline
