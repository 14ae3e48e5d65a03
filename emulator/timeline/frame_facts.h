// Adds to the frames of a recording what the engine recorded about them: why each was sent again,
// and what rules did to it. Each frame has a number, by which a rule names the frame that it acted
// on; nothing is concluded from what a frame looks like or when it came.
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

/// A rule that acted on a frame. `lane` finds that of the QP or device that the rule saw the frame
/// at, and makes it if there is none.
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

  /// A rule acted on a frame, which was drawn already or will be.
  void fired(FiredRule rule);
  /// The lane of the first rule that acted on the frame, if one did.
  std::optional<uint32_t> lane_of_rule(uint64_t number) const;
  /// The frame is that happening of the timeline. `asks` is true of a request that is answered by
  /// more than an ACK: a READ, an atomic.
  void drawn(const engine::FrameMarks& marks, size_t happening, bool asks);
  /// Adds a happening for each rule whose frame was not drawn: the recording ended before it went
  /// on. Call it when all is read.
  void add_undrawn();

 private:
  std::vector<std::string> texts_of(const engine::FrameMarks& marks, bool asks) const;
  const std::vector<FiredRule>& fired_on(uint64_t number) const;
  /// Of the frames that were sent from that lane to that lane after the frame, returns how many
  /// went on before it.
  size_t overtakers(const engine::FrameMarks& marks, const Happening& frame);

  Timeline& timeline_;
  std::map<uint64_t, std::vector<FiredRule>> fired_;                        // by the frame's number
  std::map<uint64_t, size_t> drawn_;                                        // the same
  std::map<std::pair<uint32_t, uint32_t>, std::vector<uint64_t>> numbers_;  // by lanes; ascending
};

}  // namespace rocemu::timeline
