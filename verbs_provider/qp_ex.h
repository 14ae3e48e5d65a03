// The extended posting interface, ibv_wr_post(3): one function call for each part of a work
// request.
#pragma once

#include <cstdint>

#include "verbs_provider/qp.h"

namespace rocemu::provider {

/// Whether a QP of that type can be asked for all of these IBV_QP_EX_WITH_... operations.
bool offers(ibv_qp_type type, uint64_t send_ops_flags);

/// Makes ibv_qp_to_qp_ex() succeed for the QP.
void install_work_request_builder(Qp* qp);

}  // namespace rocemu::provider
