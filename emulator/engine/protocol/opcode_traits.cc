#include "emulator/engine/protocol/opcode_traits.h"

namespace rocemu::engine {

using abi::WrOpcode;
using wire::Opcode;

std::optional<RequestKind> request_kind(WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::kSend:
    case WrOpcode::kSendWithImm:
    case WrOpcode::kSendWithInv:
      return RequestKind::kSend;
    case WrOpcode::kRdmaWrite:
    case WrOpcode::kRdmaWriteWithImm:
      return RequestKind::kWrite;
    case WrOpcode::kRdmaRead:
      return RequestKind::kRead;
    case WrOpcode::kAtomicCmpAndSwp:
    case WrOpcode::kAtomicFetchAndAdd:
      return RequestKind::kAtomic;
    case WrOpcode::kAtomicWrite:
      return RequestKind::kAtomicWrite;
    case WrOpcode::kFlush:
      return RequestKind::kFlush;
    case WrOpcode::kLocalInv:
    case WrOpcode::kBindMw:
      return RequestKind::kLocal;
    case WrOpcode::kTso:
    case WrOpcode::kDriver1:
      break;
  }
  return std::nullopt;
}

Opcode request_opcode(WrOpcode opcode, bool first, bool last) {
  switch (opcode) {
    case WrOpcode::kRdmaRead:
      return Opcode::kRcReadRequest;
    case WrOpcode::kAtomicCmpAndSwp:
      return Opcode::kRcCompareSwap;
    case WrOpcode::kAtomicFetchAndAdd:
      return Opcode::kRcFetchAdd;
    case WrOpcode::kAtomicWrite:
      return Opcode::kRcAtomicWrite;
    case WrOpcode::kFlush:
      return Opcode::kRcFlush;
    case WrOpcode::kRdmaWrite:
    case WrOpcode::kRdmaWriteWithImm:
      if (!last) return first ? Opcode::kRcWriteFirst : Opcode::kRcWriteMiddle;
      if (has_immediate(opcode)) return first ? Opcode::kRcWriteOnlyImm : Opcode::kRcWriteLastImm;
      return first ? Opcode::kRcWriteOnly : Opcode::kRcWriteLast;
    default:
      if (!last) return first ? Opcode::kRcSendFirst : Opcode::kRcSendMiddle;
      if (has_immediate(opcode)) return first ? Opcode::kRcSendOnlyImm : Opcode::kRcSendLastImm;
      if (opcode == WrOpcode::kSendWithInv) {
        return first ? Opcode::kRcSendOnlyInv : Opcode::kRcSendLastInv;
      }
      return first ? Opcode::kRcSendOnly : Opcode::kRcSendLast;
  }
}

abi::WcOpcode completion_opcode(WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::kRdmaWrite:
    case WrOpcode::kRdmaWriteWithImm:
      return abi::WcOpcode::kRdmaWrite;
    case WrOpcode::kRdmaRead:
      return abi::WcOpcode::kRdmaRead;
    case WrOpcode::kAtomicCmpAndSwp:
      return abi::WcOpcode::kCompSwap;
    case WrOpcode::kAtomicFetchAndAdd:
      return abi::WcOpcode::kFetchAdd;
    case WrOpcode::kLocalInv:
      return abi::WcOpcode::kLocalInv;
    case WrOpcode::kBindMw:
      return abi::WcOpcode::kBindMw;
    case WrOpcode::kAtomicWrite:
      return abi::WcOpcode::kAtomicWrite;
    case WrOpcode::kFlush:
      return abi::WcOpcode::kFlush;
    default:
      return abi::WcOpcode::kSend;
  }
}

}  // namespace rocemu::engine
