// receive-queue-empty: a message arrived when no receive was posted. On RC, the message is repeated
// if rnr_retry permits it; on UC and UD, it is lost.
#include "emulator/sanitizer/nic.h"
#include "emulator/sanitizer/rules.h"

namespace rocemu::sanitizer {

const Rule kReceiveQueueEmpty{
    .id = "receive-queue-empty",
    .severity = Severity::kWarning,
    .summary = "A message arrived when no receive was posted.",
    .remedy =
        "Post receives before the peer can send, that is before the QP is in RTR, and post "
        "more before they run out.",
    .clause = "man ibv_post_recv; IBTA vol 1, 9.7.5.2.8 and 9.9.3",
};

NicFinding receive_queue_empty(const MissingReceive& missing) {
  const std::string qp = "QP " + std::to_string(missing.qp);
  const std::string srq = missing.srq ? "SRQ " + std::to_string(*missing.srq) : "";
  return {kReceiveQueueEmpty,
          "had no receive on " + (srq.empty() ? qp : srq) + " for a message from QP " +
              std::to_string(missing.from) + (srq.empty() ? "" : " to " + qp) +
              (missing.is_repeated ? ", which is refused with an RNR NAK" : ", which is lost"),
          {{"created", srq.empty() ? qp : srq}}};
}

}  // namespace rocemu::sanitizer
