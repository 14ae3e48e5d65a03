// Conversion of a verbs completion to a descriptor's status
#pragma once

#include <infiniband/verbs.h>

#include "vipl/vipl.h"

namespace rocemu::vipl {

/// Returns the error bits. `operation` is the descriptor's operation (VIP_STATUS_OP_...).
constexpr uint32_t error_bits(ibv_wc_status status, uint32_t operation) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return 0;
    case IBV_WC_LOC_LEN_ERR:
      return VIP_STATUS_LENGTH_ERROR;
    case IBV_WC_LOC_QP_OP_ERR:
      return VIP_STATUS_FORMAT_ERROR;
    case IBV_WC_LOC_PROT_ERR:
      return VIP_STATUS_PROTECTION_ERROR;
    case IBV_WC_WR_FLUSH_ERR:
      return VIP_STATUS_DESC_FLUSHED_ERROR;
    case IBV_WC_LOC_ACCESS_ERR:
    case IBV_WC_REM_ACCESS_ERR:
      return VIP_STATUS_RDMA_PROT_ERROR;
    case IBV_WC_REM_INV_REQ_ERR:  // the peer's receive was too short, or its VI does not allow RDMA
      return operation == VIP_STATUS_OP_SEND ? VIP_STATUS_REMOTE_DESC_ERROR
                                             : VIP_STATUS_RDMA_PROT_ERROR;
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:  // the peer had no receive posted
      return VIP_STATUS_REMOTE_DESC_ERROR;
    default:
      return VIP_STATUS_TRANSPORT_ERROR;
  }
}

}  // namespace rocemu::vipl
