// The QP of a VI. Functions must be called with the NIC locked.
#pragma once

#include "vipl/objects.h"

namespace rocemu::vipl {

/// Gives an idle VI a QP in INIT, replacing its present QP, and posts its receives to it. Returns
/// false if that is not possible now: then the VI has no QP until ensure_qp() succeeds.
bool renew_qp(Vi& vi);
bool ensure_qp(Vi& vi);
void destroy_qp(Vi& vi);
/// Sets the access rights of a QP in INIT, after its VI's attributes changed.
bool set_access(Vi& vi);
/// Moves the QP to RTR and RTS, with the attributes of the connection.
bool make_ready(Vi& vi, rdma_cm_id* id);
void to_error(Vi& vi);

/// Posts a descriptor of a work queue. Returns 0 or an errno.
int post_to_qp(Vi& vi, WorkQueue& queue, uint64_t serial, const Posted& posted);

}  // namespace rocemu::vipl
