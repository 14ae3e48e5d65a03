#include "emulator/engine/protocol/nak_codes.h"

namespace rocemu::engine {

using abi::EventType;
using abi::WcStatus;
using wire::NakCode;

ResponderAction action_for(Verdict verdict) {
  switch (verdict) {
    case Verdict::kInvalidRequest:
      // This error is of class C: IBTA vol 1, 11.6.3.2, "invalid request local work queue error".
      return {NakCode::kInvalidRequest, WcStatus::kLocQpOpErr, VendorError::kInvalidRequest,
              EventType::kQpReqErr};
    case Verdict::kReceiveTooSmall:
      // IBTA vol 1, 9.7.5.2.4: "length of message exceeds the receive buffer" is a NAK "invalid
      // request", and the receiver completes with a local length error. (Linux rxe sends 0x63
      // instead.)
      return {NakCode::kInvalidRequest, WcStatus::kLocLenErr, VendorError::kReceiveTooSmall,
              EventType::kQpReqErr};
    case Verdict::kBadReceiveLKey:
      return {NakCode::kRemoteOperationalError, WcStatus::kLocProtErr, VendorError::kBadReceiveLKey,
              EventType::kQpAccessErr};
    case Verdict::kReceiveMemoryUnwritable:
      return {NakCode::kRemoteOperationalError, WcStatus::kLocProtErr,
              VendorError::kReceiveMemoryUnwritable, EventType::kQpAccessErr};
    case Verdict::kBadReceiveWqe:
    case Verdict::kReceiveQueueFailed:
      return {NakCode::kRemoteOperationalError, WcStatus::kLocQpOpErr, VendorError::kBadWqe,
              EventType::kQpReqErr};
    case Verdict::kRemoteAccess:
      // This error is of class C: IBTA vol 1, 9.7.5.2.5 and 11.6.3.2, "local access violation work
      // queue error".
      return {NakCode::kRemoteAccessError, WcStatus::kLocAccessErr, VendorError::kNone,
              EventType::kQpAccessErr};
    case Verdict::kRemoteMemoryUnreachable:
      return {NakCode::kRemoteOperationalError, WcStatus::kLocQpOpErr, VendorError::kNone,
              EventType::kQpAccessErr};
    case Verdict::kBadInvalidate:
      return {NakCode::kRemoteAccessError, WcStatus::kLocAccessErr, VendorError::kBadInvalidate,
              EventType::kQpAccessErr};
    case Verdict::kReceiverGone:
    case Verdict::kMemoryNotReady:
      break;
  }
  __builtin_unreachable();
}

std::optional<Verdict> verdict_of(MemoryResult result, Verdict fault) {
  switch (result) {
    case MemoryResult::kDone:
      return std::nullopt;
    case MemoryResult::kFault:
      return fault;
    case MemoryResult::kGone:
      return Verdict::kReceiverGone;
    case MemoryResult::kNotYet:
      return Verdict::kMemoryNotReady;
  }
  __builtin_unreachable();
}

std::optional<RequesterAction> action_for(NakCode code) {
  switch (code) {
    case NakCode::kInvalidRequest:
      return RequesterAction{WcStatus::kRemInvReqErr, VendorError::kNakInvalidRequest};
    case NakCode::kRemoteAccessError:
      return RequesterAction{WcStatus::kRemAccessErr, VendorError::kNakRemoteAccess};
    case NakCode::kRemoteOperationalError:
      return RequesterAction{WcStatus::kRemOpErr, VendorError::kNakRemoteOperational};
    case NakCode::kPsnSequenceError:
    case NakCode::kInvalidRdRequest:  // reliable datagrams only
      break;
  }
  return std::nullopt;
}

}  // namespace rocemu::engine
