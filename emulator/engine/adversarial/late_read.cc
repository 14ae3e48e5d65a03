#include "emulator/engine/adversarial/late_read.h"

namespace rocemu::engine::adversarial {

Instant LateRead::earliest(QpNumber qp, uint32_t wqe, uint32_t packet, Instant now) {
  const auto found = waiting_.find(qp);
  const bool is_known =
      found != waiting_.end() && found->second.wqe == wqe && found->second.packet == packet;
  if (!is_known) {
    // The first packet of a message waits with a probability of three quarters, each later burst
    // with a probability of one quarter.
    const bool is_drawn = packet == 0 ? !draw_.one_in(4) : draw_.one_in(4);
    const Duration delay = draw_.delay();
    const bool waits = is_drawn && choices_.make([&] {
      return "packet " + std::to_string(packet + 1) + " of work request " + std::to_string(wqe) +
             " of QP " + std::to_string(qp.value) + " is read from memory " + in_words(delay) +
             " late";
    });
    waiting_.insert_or_assign(qp, Waiting{wqe, packet, waits ? now + delay : now});
  }
  Waiting& waiting = waiting_.find(qp)->second;
  const Instant until = waiting.until;
  // A retransmission gets a new delay.
  if (until <= now) waiting_.erase(qp);
  return until <= now ? now : until;
}

}  // namespace rocemu::engine::adversarial
