// Fills fields of a completion with a pattern if the man page leaves them undefined, so that a
// program that uses them fails. `rocemu run --sanitize` does this in the program, and
// `--adversarial=undefined` in the NIC.
#pragma once

#include <cstdint>

#include "emulator/abi/rings.h"
#include "emulator/abi/send_opcodes.h"
#include "emulator/abi/verbs_values.h"

namespace rocemu::abi {

/// Fills the fields of a failed completion. ibv_poll_cq(3): "If the completion status is other than
/// IBV_WC_SUCCESS, only the following attributes are valid: wr_id, status, qp_num, and vendor_err."
inline void spoil_undefined_fields(Cqe& cqe) {
  constexpr uint32_t kPattern = 0x5a5a5a5a;
  if (cqe.status == static_cast<uint32_t>(WcStatus::kSuccess)) return;
  cqe.opcode = cqe.byte_len = cqe.imm_data = cqe.src_qp = cqe.wc_flags = kPattern;
  cqe.slid = cqe.pkey_index = kPattern & 0xffff;
  cqe.sl = cqe.dlid_path_bits = kPattern & 0xff;
}

/// Fills the fields that do not apply to a successful completion. ibv_poll_cq(3): imm_data is valid
/// with IBV_WC_WITH_IMM and IBV_WC_WITH_INV, pkey_index for GSI QPs, and src_qp for receives of UD
/// QPs. The fields of the path (slid, sl, dlid_path_bits) are also valid for receives of UD QPs
/// only, since other QPs know their path. byte_len is the number of bytes received; NICs such as
/// ConnectX set it for READs and atomics, but not for SENDs and WRITEs.
inline void spoil_inapplicable_fields(Cqe& cqe, bool is_datagram) {
  constexpr uint32_t kPattern = 0x5a5a5a5a;
  if (cqe.status != static_cast<uint32_t>(WcStatus::kSuccess)) return;
  const bool is_receive = cqe.queue != WorkQueue::kSend;
  if ((cqe.wc_flags & (kWcWithImm | kWcWithInv)) == 0) cqe.imm_data = kPattern;
  const auto opcode = static_cast<WcOpcode>(cqe.opcode);
  if (opcode == WcOpcode::kSend || opcode == WcOpcode::kRdmaWrite) cqe.byte_len = kPattern;
  cqe.pkey_index = kPattern & 0xffff;
  if (is_receive && is_datagram) return;
  cqe.src_qp = kPattern;
  cqe.slid = kPattern & 0xffff;
  cqe.sl = cqe.dlid_path_bits = kPattern & 0xff;
}

}  // namespace rocemu::abi
