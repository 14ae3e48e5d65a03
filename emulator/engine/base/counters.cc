#include "emulator/engine/base/counters.h"

namespace rocemu::engine {

std::string_view name(Counter counter) {
  switch (counter) {
    case Counter::kFramesOut:
      return "frames_out";
    case Counter::kBytesOut:
      return "bytes_out";
    case Counter::kFramesIn:
      return "frames_in";
    case Counter::kBytesIn:
      return "bytes_in";
    case Counter::kMulticastFramesOut:
      return "multicast_frames_out";
    case Counter::kMulticastFramesIn:
      return "multicast_frames_in";
    case Counter::kDroppedMalformed:
      return "dropped_malformed";
    case Counter::kDroppedBadIcrc:
      return "dropped_bad_icrc";
    case Counter::kDroppedUnknownQp:
      return "dropped_unknown_qp";
    case Counter::kDroppedWrongTransport:
      return "dropped_wrong_transport";
    case Counter::kDroppedWrongSource:
      return "dropped_wrong_source";
    case Counter::kDroppedWrongPkey:
      return "dropped_wrong_pkey";
    case Counter::kDroppedWrongQkey:
      return "dropped_wrong_qkey";
    case Counter::kDroppedNoReceive:
      return "dropped_no_receive";
    case Counter::kDroppedReceiveTooSmall:
      return "dropped_receive_too_small";
    case Counter::kDroppedNoMessage:
      return "dropped_no_message";
    case Counter::kDroppedInvalidRequest:
      return "dropped_invalid_request";
    case Counter::kDroppedPortDown:
      return "dropped_port_down";
    case Counter::kDroppedUnsupported:
      return "dropped_unsupported";
    case Counter::kWriteRequests:
      return "write_requests";
    case Counter::kReadRequests:
      return "read_requests";
    case Counter::kAtomicRequests:
      return "atomic_requests";
    case Counter::kDuplicateRequests:
      return "duplicate_requests";
    case Counter::kOutOfSequence:
      return "out_of_sequence";
    case Counter::kStaleAcks:
      return "stale_acks";
    case Counter::kGhostAcks:
      return "ghost_acks";
    case Counter::kAckTimeouts:
      return "ack_timeouts";
    case Counter::kRetransmittedFrames:
      return "retransmitted_frames";
    case Counter::kRnrNaksSent:
      return "rnr_naks_sent";
    case Counter::kRnrNaksReceived:
      return "rnr_naks_received";
    case Counter::kRetriesExceeded:
      return "retries_exceeded";
    case Counter::kRnrRetriesExceeded:
      return "rnr_retries_exceeded";
    case Counter::kSequenceNaksSent:
      return "sequence_naks_sent";
    case Counter::kSequenceNaksReceived:
      return "sequence_naks_received";
    case Counter::kErrorNaksSent:
      return "error_naks_sent";
    case Counter::kErrorNaksReceived:
      return "error_naks_received";
    case Counter::kCongestionMarks:
      return "congestion_marks";
    case Counter::kCnpsSent:
      return "cnps_sent";
    case Counter::kCnpsReceived:
      return "cnps_received";
    case Counter::kCqOverruns:
      return "cq_overruns";
    case Counter::kLinkDowns:
      return "link_downs";
    case Counter::kCmRetries:
      return "cm_retries";
    case Counter::kMadsDropped:
      return "mads_dropped";
    case Counter::kCount:
      break;
  }
  return "unknown";
}

}  // namespace rocemu::engine
