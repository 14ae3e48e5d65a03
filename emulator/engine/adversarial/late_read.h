// The class `late-read`: the NIC reads a message as late as its completion allows.
//
// ibv_post_send(3): the NIC owns the buffers "until after the request is fully executed and a work
// completion has been retrieved". A WQE whose data is in memory therefore waits before each burst
// of its packets. For a retransmission it waits again, and memory is read again. Inline data was
// copied by the post, and does not wait.
#pragma once

#include <cstdint>
#include <map>

#include "emulator/engine/adversarial/choices.h"
#include "emulator/engine/adversarial/draw.h"
#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/time.h"

namespace rocemu::engine::adversarial {

class LateRead {
 public:
  LateRead(uint64_t seed, Choices& choices) : draw_(seed, Class::kLateRead), choices_(choices) {}

  /// Returns the time at which packet `packet` of WQE `wqe` may be read from memory: `now`, or a
  /// later time. Until that time, further calls for this packet return the same time.
  Instant earliest(QpNumber qp, uint32_t wqe, uint32_t packet, Instant now);

 private:
  struct Waiting {
    uint32_t wqe;
    uint32_t packet;
    Instant until;
  };

  Draw draw_;
  Choices& choices_;
  std::map<QpNumber, Waiting> waiting_;
};

}  // namespace rocemu::engine::adversarial
