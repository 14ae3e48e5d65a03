// The counters of a device. Their names are part of the user interface (`rocemu show --json`).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "wire/result.h"

namespace rocemu::engine {

// clang-format off
/// A row for each counter: its enumerator, its name, and what it counts if the name does not say.
#define ROCEMU_COUNTERS(X)                                                                        \
  X(kFramesOut, "frames_out")                                                                     \
  X(kBytesOut, "bytes_out")                                                                       \
  X(kFramesIn, "frames_in")                                                                       \
  X(kBytesIn, "bytes_in")                                                                         \
  X(kMulticastFramesOut, "multicast_frames_out") /* of the frames */                              \
  X(kMulticastFramesIn, "multicast_frames_in")                                                    \
  X(kDroppedMalformed, "dropped_malformed") /* the codec refused it; kParse... says why */        \
  X(kDroppedBadIcrc, "dropped_bad_icrc")                                                          \
  X(kDroppedUnknownQp, "dropped_unknown_qp") /* or it does not receive in its state */            \
  X(kDroppedWrongTransport, "dropped_wrong_transport") /* RC packet for a UD QP and the like */   \
  X(kDroppedWrongSource, "dropped_wrong_source") /* from another address than the QP's peer */    \
  X(kDroppedWrongPkey, "dropped_wrong_pkey")                                                      \
  X(kDroppedWrongQkey, "dropped_wrong_qkey")                                                      \
  X(kDroppedNoReceive, "dropped_no_receive") /* unreliable transport, and no receive WQE */       \
  X(kDroppedReceiveTooSmall, "dropped_receive_too_small") /* unreliable, in the receive WQE */    \
  X(kDroppedNoMessage, "dropped_no_message") /* UC: the beginning of it was lost */               \
  X(kDroppedInvalidRequest, "dropped_invalid_request") /* unreliable transport: length, rights */ \
  X(kDroppedPortDown, "dropped_port_down") /* sent by or for a port that is down */               \
  X(kDroppedUnsupported, "dropped_unsupported") /* an opcode this device does not implement */    \
  X(kWriteRequests, "write_requests") /* of these three, the first packets */                     \
  X(kReadRequests, "read_requests")                                                               \
  X(kAtomicRequests, "atomic_requests")                                                           \
  X(kDuplicateRequests, "duplicate_requests")                                                     \
  X(kOutOfSequence, "out_of_sequence") /* requests ahead of the expected PSN */                   \
  X(kStaleAcks, "stale_acks") /* acknowledge what was acknowledged before */                      \
  X(kGhostAcks, "ghost_acks") /* acknowledge what was never sent */                               \
  X(kAckTimeouts, "ack_timeouts")                                                                 \
  X(kRetransmittedFrames, "retransmitted_frames")                                                 \
  X(kRnrNaksSent, "rnr_naks_sent")                                                                \
  X(kRnrNaksReceived, "rnr_naks_received")                                                        \
  X(kRetriesExceeded, "retries_exceeded") /* IBV_WC_RETRY_EXC_ERR */                              \
  X(kRnrRetriesExceeded, "rnr_retries_exceeded") /* IBV_WC_RNR_RETRY_EXC_ERR */                   \
  X(kSequenceNaksSent, "sequence_naks_sent")                                                      \
  X(kSequenceNaksReceived, "sequence_naks_received")                                              \
  X(kErrorNaksSent, "error_naks_sent")                                                            \
  X(kErrorNaksReceived, "error_naks_received")                                                    \
  X(kCongestionMarks, "congestion_marks") /* packets that a switch marked (ECN) */                \
  X(kCnpsSent, "cnps_sent")                                                                       \
  X(kCnpsReceived, "cnps_received")                                                               \
  X(kCnpsHandled, "cnps_handled") /* those that made a QP slow down */                            \
  X(kCqOverruns, "cq_overruns")                                                                   \
  X(kLinkDowns, "link_downs") /* how often the port went down */                                  \
  X(kCmRetries, "cm_retries") /* repeated MADs */                                                 \
  X(kMadsDropped, "mads_dropped") /* that no connection waits for */
// clang-format on

enum class Counter : uint8_t {
#define ROCEMU_COUNTER(counter, name) counter,
  ROCEMU_COUNTERS(ROCEMU_COUNTER)
#undef ROCEMU_COUNTER
};

/// All counters, in the order of the enumeration.
inline constexpr Counter kCounters[] = {
#define ROCEMU_COUNTER(counter, name) Counter::counter,
    ROCEMU_COUNTERS(ROCEMU_COUNTER)
#undef ROCEMU_COUNTER
};

constexpr std::string_view name(Counter counter) {
  switch (counter) {
#define ROCEMU_COUNTER(counter, name) \
  case Counter::counter:              \
    return name;
    ROCEMU_COUNTERS(ROCEMU_COUNTER)
#undef ROCEMU_COUNTER
  }
  return "";
}

class Counters {
 public:
  constexpr void add(Counter counter, uint64_t n = 1) {
    values_[static_cast<size_t>(counter)] += n;
  }
  constexpr uint64_t get(Counter counter) const { return values_[static_cast<size_t>(counter)]; }

 private:
  std::array<uint64_t, std::size(kCounters)> values_{};
};

}  // namespace rocemu::engine
