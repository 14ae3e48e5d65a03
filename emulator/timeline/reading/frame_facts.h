// Adds to the frames of a recording what the engine recorded about them: the reason of each
// retransmission, and the effects of rules. Each frame has a number, by which a rule names the
// frame that it acted on. Nothing is inferred from the bytes or the time of a frame.
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

/// A rule that acted on a frame. `lane` finds or creates the lane of the QP or device at which the
/// rule acted.
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

  /// Notes that a rule acted on a frame, which has been or will be drawn.
  void fired(FiredRule rule);
  /// Returns the lane of the first rule that acted on the frame, if there is one.
  std::optional<uint32_t> lane_of_rule(uint64_t number) const;
  /// Notes which happening of the timeline shows the frame. `asks` is true if the frame is a
  /// request whose answer is more than an ACK: a READ or an atomic.
  void drawn(const engine::FrameMarks& marks, size_t happening, bool asks);
  /// Adds a happening for each rule whose frame was not drawn, because the recording ended before
  /// the frame continued. Must be called after the last record.
  void add_undrawn();

 private:
  std::vector<std::string> texts_of(const engine::FrameMarks& marks, bool asks) const;
  const std::vector<FiredRule>& fired_on(uint64_t number) const;
  /// Returns the number of frames that were sent later between the same lanes and overtook the
  /// frame.
  size_t overtakers(const engine::FrameMarks& marks, const Happening& frame);

  Timeline& timeline_;
  std::map<uint64_t, std::vector<FiredRule>> fired_;                        // by the frame's number
  std::map<uint64_t, size_t> drawn_;                                        // by the frame's number
  std::map<std::pair<uint32_t, uint32_t>, std::vector<uint64_t>> numbers_;  // by lanes; ascending
};

}  // namespace rocemu::timeline
