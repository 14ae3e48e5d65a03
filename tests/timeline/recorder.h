// Records the events of a test engine as the daemon does, and reads the recording as a timeline.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "emulator/journal/recording.h"
#include "emulator/timeline/model.h"
#include "tests/daemon/temp_dir.h"
#include "tests/support/bench.h"
#include "wire/packet.h"

namespace rocemu::test {

class Recorder : public BenchObserver {
 public:
  void begin(const engine::FabricConfig& config) override;
  void before_step(engine::Instant now, const engine::Input& input) override;
  void after_step(const engine::Outputs& outputs) override;

  /// Ends the recording.
  timeline::Timeline timeline();

 private:
  daemon::TempDir dir_;
  ArrayMemory unused_;
  std::optional<journal::Recording> recording_;
};

/// Returns the frames of a timeline in order, including messages of the connection manager.
std::vector<timeline::Happening> frames_of(const timeline::Timeline& timeline);
/// Parses the frame of a happening. The packet's payload is valid as long as the happening exists.
wire::Packet packet_of(const timeline::Happening& frame);
/// Returns a text for each frame that has a reason, such as "psn +1: dropped by rule 'lost'". If
/// the frame is not a SEND, the operation precedes the PSN.
std::vector<std::string> reasons_of(const timeline::Timeline& timeline);

}  // namespace rocemu::test
