// Short messages carry their data in the send WQE, behind its list: the daemon then need not fetch
// it out of this process, which takes longer than all else that it does for such a message.
//
// ibv_post_send(3): "The buffers used by a WR can only be safely reused after WR the request is
// fully executed and a work completion has been retrieved". Whenever the data is read until then,
// it is the same; but for a fence, behind which it may be that of a READ that is still to come.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

namespace rocemu::provider {

/// Copies to `to`, which has room for abi::kMaxCarried bytes, all that the list names. Its size, or
/// 0 if the daemon is to fetch it: it is longer, or not of memory that this process registered
/// under its own addresses, or not there; or lent, where nothing is gained.
uint32_t carry(ibv_context* context, const ibv_sge* list, uint32_t count, std::byte* to);

}  // namespace rocemu::provider
