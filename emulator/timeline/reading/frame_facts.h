// Adds to the frames of a recording what the engine recorded about them: the reason for each
// retransmission, and the effects of rules. Each frame has a number, by which a recorded rule names
// the frame. Nothing is concluded from the bytes or the time of a frame.
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

/// A rule that acted on a frame. The function `lane` returns the lane of the QP or device at which
/// the rule acted, and creates the lane if necessary.
struct FiredRule {
  engine::Instant at{};
  std::string rule;
  std::string subject;  // for users
  engine::FrameFault fault;
  std::function<uint32_t()> lane;
};

class FrameFacts {
 public:
  explicit FrameFacts(Timeline& timeline) : timeline_(timeline) {}

  /// Notes that a rule acted on a frame, which was drawn before or will be drawn later.
  void fired(FiredRule rule);
  /// Returns the lane of the first rule that acted on the frame with this number; nothing if no
  /// rule did.
  std::optional<uint32_t> lane_of_rule(uint64_t number) const;
  /// Notes that the frame is drawn as the happening with this index. `asks` is true if the frame is
  /// a READ or atomic request, whose answer is more than an ACK.
  void drawn(const engine::FrameMarks& marks, size_t happening, bool asks);
  /// Adds a happening for each rule whose frame was not drawn, because the recording ended before
  /// the frame was sent on. Must be called after the last record.
  void add_undrawn();

 private:
  std::vector<std::string> texts_of(const engine::FrameMarks& marks, bool asks) const;
  const std::vector<FiredRule>& fired_on(uint64_t number) const;
  /// Returns the number of frames between the same lanes that were sent after this frame, and
  /// overtook it.
  size_t overtakers(const engine::FrameMarks& marks, const Happening& frame);

  Timeline& timeline_;
  std::map<uint64_t, std::vector<FiredRule>> fired_;                        // by the frame's number
  std::map<uint64_t, size_t> drawn_;                                        // by the frame's number
  std::map<std::pair<uint32_t, uint32_t>, std::vector<uint64_t>> numbers_;  // by lanes; ascending
};

}  // namespace rocemu::timeline
