// Creates CQs, for ibv_create_cq(3) and ibv_create_cq_ex(3).
#pragma once

#include <cstdint>

#include <infiniband/verbs.h>

#include "verbs_provider/structs/cq.h"

namespace rocemu::provider {

/// Creates a CQ without the fields and flags of an ibv_cq_ex. `parent_domain` may be null.
Cq* make_cq(ibv_context* context, uint32_t capacity, const ibv_comp_channel* channel,
            uint32_t comp_vector, ibv_pd* parent_domain);

/// Gives the CQ the functions of an ibv_cq_ex that has the fields of these IBV_WC_EX_WITH_...
/// flags.
void make_extended(Cq* cq, uint64_t wc_flags);

}  // namespace rocemu::provider
