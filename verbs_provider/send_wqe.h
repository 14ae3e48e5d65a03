// What ibv_post_send(3) and ibv_wr_post(3) have in common: which requests a QP can be asked for,
// and when it can be asked at all.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "emulator/abi/verbs_values.h"

namespace rocemu::provider {

constexpr uint32_t bit(ibv_wr_opcode opcode) {
  return 1u << opcode;
}

inline constexpr uint32_t kSends = bit(IBV_WR_SEND) | bit(IBV_WR_SEND_WITH_IMM);
inline constexpr uint32_t kWrites = bit(IBV_WR_RDMA_WRITE) | bit(IBV_WR_RDMA_WRITE_WITH_IMM);
inline constexpr uint32_t kInvalidates = bit(IBV_WR_SEND_WITH_INV) | bit(IBV_WR_LOCAL_INV);
inline constexpr uint32_t kAtomics =
    bit(IBV_WR_ATOMIC_CMP_AND_SWP) | bit(IBV_WR_ATOMIC_FETCH_AND_ADD);
inline constexpr uint32_t kInlineable = kSends | kWrites | bit(IBV_WR_SEND_WITH_INV);

/// ibv_post_send(3) has the table: which opcodes a QP's transport knows.
constexpr uint32_t opcodes_of(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return kSends | kWrites | kInvalidates | kAtomics | bit(IBV_WR_RDMA_READ);
    case IBV_QPT_UC:
      return kSends | kWrites | kInvalidates;
    case IBV_QPT_UD:
      return kSends;
    default:
      return 0;
  }
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

}  // namespace rocemu::provider
