// The meaning of each error for each side (IBTA vol 1, 9.9.3 and table "Responder error behavior").
// A responder's verdict becomes a NAK for the requester, and a completion status or an async event
// at the responder. A NAK becomes a completion status at the requester.
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/abi/verbs_values.h"
#include "emulator/engine/base/host_memory.h"
#include "wire/aeth.h"

namespace rocemu::engine {

/// The values of ibv_wc.vendor_err, which distinguish the causes of a status. The numbers never
/// change, so users may rely on them.
enum class VendorError : uint32_t {
  kNone = 0,
  kBadSendLKey = 1,           // L_Key unknown, of another PD, or the range leaves its region
  kSendMemoryUnreadable = 2,  // the region is valid, but the application's memory is not there
  kMessageTooLong = 3,        // longer than the port's max_msg_sz
  kOpcodeNotSupported = 4,    // this QP type cannot do the work request's opcode
  kBadWqe = 5,                // more SGEs or inline data than the QP has space for
  kAckTimeout = 6,            // retry_cnt retries, no acknowledgement
  kSequenceRetries = 7,       // retry_cnt retries, answered by PSN sequence errors
  kRnrRetries = 8,            // rnr_retry retries, answered by RNR NAKs
  kNakInvalidRequest = 9,
  kNakRemoteAccess = 10,
  kNakRemoteOperational = 11,
  kReceiveTooSmall = 12,  // the message is longer than the receive buffer
  kBadReceiveLKey = 13,   // as kBadSendLKey, or without local write permission
  kReceiveMemoryUnwritable = 14,
  kInvalidRequest = 15,  // the peer's request broke the protocol while this WQE was in use
  kFlushed = 16,         // the QP was in the error state, or entered it
  kResponseMemoryUnwritable = 17,  // the buffer for the response of a READ or atomic does not exist
  kBadResponse = 18,               // a response of the wrong kind, length or position
  kBadBind = 19,                   // an invalid window, region, range or right of a bind
  kBadInvalidate = 20,             // no type 2 window with this R_Key is bound on this QP
  kBadAddressHandle = 21,          // unknown, destroyed or of another PD
  kLKeyAsRKey = 22,                // as kNakRemoteAccess, and the key is the L_Key of a region
};

/// The reasons for which a responder finally refuses a request. (A wrong PSN and a receiver that is
/// not ready are not among them, since the requester may try again.)
enum class Verdict : uint8_t {
  kInvalidRequest,  // opcode sequence, lengths, an operation the QP does not allow
  kReceiveTooSmall,
  kBadReceiveLKey,
  kReceiveMemoryUnwritable,
  kBadReceiveWqe,
  kReceiveQueueFailed,  // an XRC SRQ whose CQ overran
  kRemoteAccess,  // R_Key unknown, of another PD, without the right, or the range leaves its region
  kRemoteMemoryUnreachable,  // the region is valid, but the application's memory is not there
  kBadInvalidate,            // the R_Key of a SEND with invalidate, as VendorError::kBadInvalidate
  kReceiverGone,             // the receiving process died: no response at all
  kMemoryNotReady,           // not final: the requester must try again
};

/// Returns the verdict for an access that the keys allow: nothing if the access was carried out,
/// `fault` if the memory does not exist, or the verdict for another MemoryResult.
std::optional<Verdict> verdict_of(MemoryResult result, Verdict fault);

struct ResponderAction {
  wire::NakCode nak;
  abi::WcStatus status;  // of the receive WQE in use, if there is one
  VendorError vendor;
  abi::EventType event;  // raised if no receive WQE can report the error
};

ResponderAction action_for(Verdict verdict);

struct RequesterAction {
  abi::WcStatus status;
  VendorError vendor;
};

/// Returns what the requester must do after a NAK; nothing for codes that request a retry or are
/// reserved.
std::optional<RequesterAction> action_for(wire::NakCode code);

}  // namespace rocemu::engine
