// Short messages carry their data in the send WQE, behind its list, and those of some KiB in a slot
// that the WQE names (abi::SendSlots): the daemon then need not fetch it out of this process, which
// takes longer than all else that it does for such a message.
//
// ibv_post_send(3): "The buffers used by a WR can only be safely reused after WR the request is
// fully executed and a work completion has been retrieved". Whenever the data is read until then,
// it is the same; but for a fence, behind which it may be that of a READ that is still to come.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "emulator/abi/rings.h"
#include "verbs_provider/base/work_queue.h"
#include "verbs_provider/context/context.h"

namespace rocemu::provider {

/// Copies all that the list names to `behind_list`, which has room for abi::kMaxCarried bytes, or
/// into a slot, and says so in the WQE. Otherwise the daemon fetches the message: with
/// `--exact-memory`, if it is longer, if there is no free slot, or if it is not in memory that this
/// process registered under its own addresses, or not there. The caller holds the queue's lock, and
/// the WQE is its next.
void carry(ibv_context* context, const ibv_sge* list, uint32_t count, std::byte* behind_list,
           WorkQueue& queue, abi::SendWqe& wqe);

/// These WQEs of the queue are over, or were never posted: their slots are free.
void release_slots(Context::Parts& parts, WorkQueue& queue, uint32_t begin, uint32_t end);

}  // namespace rocemu::provider
