// What a device counts. Names are part of the user interface (`rocemu show --json`).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "wire/result.h"

namespace rocemu::engine {

enum class Counter : uint8_t {
  kFramesOut,
  kBytesOut,
  kFramesIn,
  kBytesIn,
  kMulticastFramesOut,  // of the frames
  kMulticastFramesIn,
  kDroppedMalformed,  // the codec refused it; kParse... says why
  kDroppedBadIcrc,
  kDroppedUnknownQp,       // no such QP, or none that receives in its state
  kDroppedWrongTransport,  // RC packet for a UD QP and the like
  kDroppedWrongSource,     // from another address than the QP's peer
  kDroppedWrongPkey,
  kDroppedWrongQkey,
  kDroppedNoReceive,        // unreliable transport, and no receive WQE
  kDroppedReceiveTooSmall,  // unreliable transport: the receive WQE has no room for the message
  kDroppedNoMessage,        // UC: a Middle or Last of a message whose beginning was lost
  kDroppedInvalidRequest,   // unreliable transport: wrong length, or no right to do it
  kDroppedPortDown,         // sent by or for a port that is down
  kDroppedUnsupported,      // an opcode this device does not implement
  kWriteRequests,           // accepted by a QP of this device, that is the first packet of each
  kReadRequests,
  kAtomicRequests,
  kDuplicateRequests,
  kOutOfSequence,  // requests ahead of the expected PSN
  kStaleAcks,      // acknowledge what was acknowledged before
  kGhostAcks,      // acknowledge what was never sent
  kAckTimeouts,
  kRetransmittedFrames,
  kRnrNaksSent,
  kRnrNaksReceived,
  kRetriesExceeded,     // IBV_WC_RETRY_EXC_ERR
  kRnrRetriesExceeded,  // IBV_WC_RNR_RETRY_EXC_ERR
  kSequenceNaksSent,
  kSequenceNaksReceived,
  kErrorNaksSent,
  kErrorNaksReceived,
  kCongestionMarks,  // packets that a switch marked (ECN)
  kCnpsSent,
  kCnpsReceived,
  kCqOverruns,
  kLinkDowns,    // how often the port went down
  kCmRetries,    // messages of the connection manager that were repeated
  kMadsDropped,  // that no connection waits for
  kCount,
};

std::string_view name(Counter counter);

class Counters {
 public:
  void add(Counter counter, uint64_t n = 1) { values_[static_cast<size_t>(counter)] += n; }
  uint64_t get(Counter counter) const { return values_[static_cast<size_t>(counter)]; }

 private:
  std::array<uint64_t, static_cast<size_t>(Counter::kCount)> values_{};
};

}  // namespace rocemu::engine
