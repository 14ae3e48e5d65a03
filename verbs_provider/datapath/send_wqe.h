// The common part of ibv_post_send(3) and ibv_wr_post(3): the requests that a QP supports, and the
// states in which it accepts them.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "emulator/abi/rings.h"
#include "emulator/abi/send_opcodes.h"
#include "emulator/abi/verbs_values.h"

namespace rocemu::provider {

constexpr uint32_t bit(ibv_wr_opcode opcode) {
  return 1u << opcode;
}

// IBV_WR_FLUSH and IBV_WR_ATOMIC_WRITE, which older headers lack
inline constexpr auto kFlush = static_cast<ibv_wr_opcode>(abi::WrOpcode::kFlush);
inline constexpr auto kAtomicWrite = static_cast<ibv_wr_opcode>(abi::WrOpcode::kAtomicWrite);

// Sets of opcodes, from the properties of each in abi::kSendOpcodes
inline constexpr uint32_t kAtomics = abi::opcodes_where(&abi::SendOpcode::is_atomic);
inline constexpr uint32_t kDataless = abi::opcodes_where(&abi::SendOpcode::is_dataless);
inline constexpr uint32_t kLocal = abi::opcodes_where(&abi::SendOpcode::is_local);
inline constexpr uint32_t kRdma = abi::opcodes_where(&abi::SendOpcode::is_rdma);
inline constexpr uint32_t kInlineable = abi::opcodes_where(&abi::SendOpcode::may_be_inline);
/// Immediate data and a key to invalidate use the same field.
inline constexpr uint32_t kWithImmediate = abi::opcodes_where(&abi::SendOpcode::has_immediate) |
                                           abi::opcodes_where(&abi::SendOpcode::has_key);
inline constexpr uint32_t kOnlyBuilt = abi::opcodes_where(&abi::SendOpcode::needs_builder);

/// Returns whether the data of a request can be copied when it is posted (auto_inline.h).
constexpr bool can_carry(ibv_wr_opcode opcode, unsigned send_flags) {
  return (bit(opcode) & kInlineable) != 0 && (send_flags & IBV_SEND_FENCE) == 0;
}

/// Returns the opcodes that a QP of that type supports, by ibv_post_send(3) or ibv_wr_post(3).
constexpr uint32_t opcodes_of(ibv_qp_type type) {
  return abi::send_opcodes(static_cast<abi::QpType>(type));
}

constexpr bool can_send(abi::QpState state) {
  switch (state) {
    case abi::QpState::kReset:
    case abi::QpState::kInit:
    case abi::QpState::kRtr:
      return false;
    case abi::QpState::kRts:
    case abi::QpState::kSqd:
    case abi::QpState::kSqe:
    case abi::QpState::kErr:
      return true;
  }
  return false;
}

/// Returns whether the flags are supported. IBV_SEND_IP_CSUM is "valid only when device_cap_flags
/// in device_attr indicates" it (ibv_post_send(3)), which is not the case for rocemu's devices.
constexpr bool are_valid(unsigned send_flags) {
  return (send_flags & IBV_SEND_IP_CSUM) == 0;
}

/// Returns whether the window can be bound in this way. A bind of length 0 ends the binding, and
/// then needs no region.
constexpr bool is_valid(const ibv_mw_bind_info& info) {
  return info.mr != nullptr || (info.addr == 0 && info.length == 0);
}

/// Returns whether a window of that type can begin at the address that the bind asks for. Only type
/// 2 windows can be zero-based (IBTA vol 1, o10-36.2.2). mlx5 and rxe refuse the post, too, even of
/// a bind of length 0.
constexpr bool can_have_base(ibv_mw_type type, const ibv_mw_bind_info& info) {
  return type == IBV_MW_TYPE_2 || (info.mw_access_flags & IBV_ACCESS_ZERO_BASED) == 0;
}

/// Writes a bind of a type 2 window into the WQE. The consumer owns the low 8 bits of the key:
/// "Bind a MW type 2 ... specified by the rkey" (ibv_wr_post(3)). The other bits are the window's,
/// whatever the request contains, as with mlx5, irdma and rxe.
inline void write_bind(const ibv_mw& window, uint32_t rkey, const ibv_mw_bind_info& info,
                       abi::SendWqe* wqe) {
  constexpr uint32_t kConsumers = 0xff;
  wqe->window = window.handle;
  wqe->rkey = (window.rkey & ~kConsumers) | (rkey & kConsumers);
  wqe->remote_address = info.addr;
  wqe->bind.length = info.length;
  wqe->bind.lkey = info.mr != nullptr ? info.mr->lkey : 0;
  wqe->bind.access = info.mw_access_flags;
}

}  // namespace rocemu::provider
