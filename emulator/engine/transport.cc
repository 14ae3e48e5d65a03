#include "emulator/engine/transport.h"

namespace rocemu::engine {

using abi::QpType;
using abi::WrOpcode;
using wire::Transport;

Transport transport_of(QpType type) {
  switch (type) {
    case QpType::kRc:
      return Transport::kRc;
    case QpType::kUc:
      return Transport::kUc;
    case QpType::kUd:
      return Transport::kUd;
    case QpType::kXrcSend:
    case QpType::kXrcRecv:
      return Transport::kXrc;
  }
  __builtin_unreachable();
}

bool is_reliable(QpType type) {
  return type != QpType::kUc && type != QpType::kUd;
}

bool can_post(QpType type, WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::kSend:
    case WrOpcode::kSendWithImm:
      return type != QpType::kXrcRecv;
    case WrOpcode::kRdmaWrite:
    case WrOpcode::kRdmaWriteWithImm:
    case WrOpcode::kLocalInv:
    case WrOpcode::kBindMw:
      return type == QpType::kRc || type == QpType::kUc || type == QpType::kXrcSend;
    case WrOpcode::kRdmaRead:
    case WrOpcode::kAtomicCmpAndSwp:
    case WrOpcode::kAtomicFetchAndAdd:
    // The man page has it for UC too, but IBTA vol 1 (9.4.1.1.2) no UC opcode.
    case WrOpcode::kSendWithInv:
      return type == QpType::kRc || type == QpType::kXrcSend;
    case WrOpcode::kFlush:
    case WrOpcode::kAtomicWrite:
      return type == QpType::kRc;
    case WrOpcode::kTso:
    case WrOpcode::kDriver1:
      break;
  }
  return false;
}

}  // namespace rocemu::engine
