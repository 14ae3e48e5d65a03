// The QP of a VI. With the NIC locked.
#pragma once

#include "vipl/objects.h"

namespace rocemu::vipl {

/// Gives an idle VI a QP in INIT, in place of the one it may have, and posts its receives to it.
/// False if there cannot be one now: then it has none until ensure_qp() succeeds.
bool renew_qp(Vi& vi);
bool ensure_qp(Vi& vi);
void destroy_qp(Vi& vi);
/// Access rights of a QP in INIT, after its VI's attributes changed.
bool set_access(Vi& vi);
/// By what the connection knows, to RTR and RTS.
bool make_ready(Vi& vi, rdma_cm_id* id);
void to_error(Vi& vi);

/// Posts a descriptor of a work queue; 0 or an errno.
int post_to_qp(Vi& vi, WorkQueue& queue, uint64_t serial, const Posted& posted);

}  // namespace rocemu::vipl
