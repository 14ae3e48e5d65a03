// The extended posting interface, ibv_wr_post(3): one function call for each part of a work
// request.
#pragma once

#include <cstdint>

#include "verbs_provider/structs/qp.h"

namespace rocemu::provider {

/// Returns whether a QP of that type supports all of these IBV_QP_EX_WITH_... operations.
/// `refused_opcodes` are the opcodes that the device's NIC lacks.
bool offers(ibv_qp_type type, uint64_t send_ops_flags, uint32_t refused_opcodes = 0);

/// Builds a FLUSH. rdma-core 45 introduced ibv_wr_flush(), which is offered if libibverbs has it;
/// tests call this function with every libibverbs.
void wr_flush(ibv_qp_ex* qp, uint32_t rkey, uint64_t address, size_t length, uint8_t type,
              uint8_t level);

/// Increases the capacities of a QP to what these operations need beyond the application's request.
void make_room_for(uint64_t send_ops_flags, ibv_qp_cap* cap);

/// Makes ibv_qp_to_qp_ex() succeed for the QP, and sets the functions of the operations.
void install_work_request_builder(Qp* qp, uint64_t send_ops_flags);

}  // namespace rocemu::provider
