// The table of ibv_post_send(3), "Each QP Transport Service Type supports a specific set of
// opcodes", with the differences of this device. Tests compare the provider and the engine with it.
#pragma once

#include <array>
#include <cstdint>

#include "emulator/abi/send_opcodes.h"
#include "emulator/abi/verbs_values.h"

namespace rocemu::test {

struct PostSendRow {
  abi::WrOpcode opcode;
  bool ud, uc, rc, xrc_send;
};

// clang-format off
inline constexpr std::array kPostSendTable = {
    //                                             UD     UC     RC     XRC_SEND
    PostSendRow{abi::WrOpcode::kSend,              true,  true,  true,  true},
    PostSendRow{abi::WrOpcode::kSendWithImm,       true,  true,  true,  true},
    PostSendRow{abi::WrOpcode::kRdmaWrite,         false, true,  true,  true},
    PostSendRow{abi::WrOpcode::kRdmaWriteWithImm,  false, true,  true,  true},
    PostSendRow{abi::WrOpcode::kRdmaRead,          false, false, true,  true},
    PostSendRow{abi::WrOpcode::kAtomicCmpAndSwp,   false, false, true,  true},
    PostSendRow{abi::WrOpcode::kAtomicFetchAndAdd, false, false, true,  true},
    PostSendRow{abi::WrOpcode::kLocalInv,          false, true,  true,  true},
    PostSendRow{abi::WrOpcode::kBindMw,            false, true,  true,  true},
    PostSendRow{abi::WrOpcode::kSendWithInv,       false, true,  true,  true},
    PostSendRow{abi::WrOpcode::kTso,               true,  false, false, false},
};
// clang-format on

/// The number of values that tests try as `opcode`, from 0 on, known or not.
inline constexpr uint32_t kOpcodesTried = 40;

constexpr bool device_supports(abi::QpType type, uint32_t opcode) {
  using enum abi::WrOpcode;
  const auto known = static_cast<abi::WrOpcode>(opcode);
  // IBTA vol 1, table "OpCode field": no UC opcode has an IETH. TSO is not supported, since
  // ibv_query_device_ex(3) reports 0 as tso_caps.max_tso.
  if (type == abi::QpType::kUc && known == kSendWithInv) return false;
  if (known == kTso) return false;
  // The page does not list these two opcodes (IBTA vol 1, annex A19).
  if (known == kFlush || known == kAtomicWrite) return type == abi::QpType::kRc;
  for (const PostSendRow& row : kPostSendTable) {
    if (row.opcode != known) continue;
    switch (type) {
      case abi::QpType::kUd:
        return row.ud;
      case abi::QpType::kUc:
        return row.uc;
      case abi::QpType::kRc:
        return row.rc;
      case abi::QpType::kXrcSend:
        return row.xrc_send;
      case abi::QpType::kXrcRecv:
        return false;
    }
  }
  return false;
}

}  // namespace rocemu::test
