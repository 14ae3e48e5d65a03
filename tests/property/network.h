// The link between two engines. Its seed determines how long frames take, and which frames are
// lost, duplicated and reordered.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "emulator/engine/base/random.h"
#include "emulator/engine/base/time.h"
#include "tests/property/program.h"

namespace rocemu::property {

class Network {
 public:
  explicit Network(const Link& link) : link_(link), random_(link.seed) {}

  struct Arrival {
    uint32_t to;  // the side
    std::vector<uint8_t> bytes;
  };

  void send(engine::Instant now, uint32_t from, std::span<const uint8_t> frame);
  std::optional<engine::Instant> next() const {
    return under_way_.empty() ? std::nullopt : std::optional(under_way_.begin()->first);
  }
  /// Removes and returns the frame that arrives at the time next().
  Arrival take();

  // The number of frames that were sent so far, and the number of those that were lost.
  uint64_t frames = 0, lost = 0;

 private:
  bool chance(uint8_t percent) { return random_.next() % 100 < percent; }
  void deliver(engine::Instant now, uint32_t to, std::span<const uint8_t> frame);

  Link link_;
  engine::Random random_;
  std::multimap<engine::Instant, Arrival> under_way_;
  /// The number of losses of each frame. A frame that is sent again and again must finally arrive,
  /// or retry_cnt would be exceeded without an error.
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> losses_;  // key: destination QP and PSN
};

}  // namespace rocemu::property
