// Conversion of attributes of QPs and address vectors between the structs of <infiniband/verbs.h>
// and the daemon's
#pragma once

#include <infiniband/verbs.h>

#include "emulator/abi/control.h"

namespace rocemu::provider {

abi::QpCap to_abi(const ibv_qp_cap& cap);
ibv_qp_cap from_abi(const abi::QpCap& cap);

abi::AhAttr to_abi(const ibv_ah_attr& attr);
ibv_ah_attr from_abi(const abi::AhAttr& attr);

/// Converts only the attributes that `mask` (ibv_qp_attr_mask) names: the application need not have
/// set the others, whose arbitrary values must not reach a journal.
abi::QpAttr to_abi(const ibv_qp_attr& attr, int mask);
void from_abi(const abi::QpAttr& from, ibv_qp_attr* to);

/// Fills the attributes that `mask` does not name with meaningless bytes (kUnusableByte).
/// ibv_query_qp(3): "attr_mask is a hint that specifies the minimum list of attributes to
/// retrieve."
void fill_unrequested(int mask, ibv_qp_attr* attr);

}  // namespace rocemu::provider
