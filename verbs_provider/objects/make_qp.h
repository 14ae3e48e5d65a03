// Fills in and releases QPs, both those that a program creates and those that it opens.
#pragma once

#include <infiniband/verbs.h>

#include "verbs_provider/structs/qp.h"

namespace rocemu::provider {

/// Sets all members of the ibv_qp that libibverbs leaves to the provider, except its QP number and
/// its handle, and holds the QP's PD and XRC domain.
void fill(Qp* qp, ibv_context* context, const ibv_qp_init_attr_ex& attr);
void dispose_qp(Qp* qp);

}  // namespace rocemu::provider
