// Which send opcodes a QP of each type supports: the provider refuses to post others, and the
// engine to carry them out.
#pragma once

#include <cstdint>

#include "emulator/abi/verbs_values.h"

namespace rocemu::abi {

constexpr uint32_t opcode_bit(WrOpcode opcode) {
  return 1u << static_cast<uint32_t>(opcode);
}

/// The table of ibv_post_send(3), as bits. It differs from the page in what the wire has no opcode
/// for (IBTA vol 1, table "OpCode field", and annex A19), SEND with invalidate over UC, and in what
/// this device does not offer, TSO. ATOMIC WRITE and FLUSH, which the page lacks, are for RC.
constexpr uint32_t send_opcodes(QpType type) {
  constexpr uint32_t kDatagram = opcode_bit(WrOpcode::kSend) | opcode_bit(WrOpcode::kSendWithImm);
  constexpr uint32_t kConnected = kDatagram | opcode_bit(WrOpcode::kRdmaWrite) |
                                  opcode_bit(WrOpcode::kRdmaWriteWithImm) |
                                  opcode_bit(WrOpcode::kLocalInv) | opcode_bit(WrOpcode::kBindMw);
  constexpr uint32_t kReliable =
      kConnected | opcode_bit(WrOpcode::kSendWithInv) | opcode_bit(WrOpcode::kRdmaRead) |
      opcode_bit(WrOpcode::kAtomicCmpAndSwp) | opcode_bit(WrOpcode::kAtomicFetchAndAdd);
  switch (type) {
    case QpType::kRc:
      return kReliable | opcode_bit(WrOpcode::kAtomicWrite) | opcode_bit(WrOpcode::kFlush);
    case QpType::kXrcSend:
      return kReliable;
    case QpType::kUc:
      return kConnected;
    case QpType::kUd:
      return kDatagram;
    case QpType::kXrcRecv:
      break;
  }
  return 0;
}

/// Whether a QP of that type carries out `opcode`, which may be any number.
constexpr bool supports(QpType type, WrOpcode opcode) {
  return static_cast<uint32_t>(opcode) < 32 && (send_opcodes(type) & opcode_bit(opcode)) != 0;
}

}  // namespace rocemu::abi
