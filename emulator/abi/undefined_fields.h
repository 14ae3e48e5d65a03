// Fills the fields of a completion that the man page leaves undefined with a pattern, so that a
// program that uses them fails. `rocemu run --sanitize` does this in the program, and
// `--adversarial=undefined` in the NIC.
#pragma once

#include <cstdint>

#include "emulator/abi/rings.h"
#include "emulator/abi/verbs_values.h"

namespace rocemu::abi {

/// ibv_poll_cq(3): "If the completion status is other than IBV_WC_SUCCESS, only the following
/// attributes are valid: wr_id, status, qp_num, and vendor_err."
inline void spoil_undefined_fields(Cqe& cqe) {
  constexpr uint32_t kPattern = 0x5a5a5a5a;
  if (cqe.status == static_cast<uint32_t>(WcStatus::kSuccess)) return;
  cqe.opcode = cqe.byte_len = cqe.imm_data = cqe.src_qp = cqe.wc_flags = kPattern;
  cqe.slid = cqe.pkey_index = kPattern & 0xffff;
  cqe.sl = cqe.dlid_path_bits = kPattern & 0xff;
}

}  // namespace rocemu::abi
