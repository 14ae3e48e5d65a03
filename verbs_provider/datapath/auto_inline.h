// Short messages carry their data in the send WQE, after its list, and longer ones of some KiB in a
// slot that the WQE names (abi::SendSlots). The daemon then need not read the data from this
// process, which takes longer than all its other work for such a message.
//
// ibv_post_send(3): "The buffers used by a WR can only be safely reused after WR the request is
// fully executed and a work completion has been retrieved". Until then the data can be read at any
// time, with one exception: behind a fence, it can be the data of a READ that has not arrived yet.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "emulator/abi/rings.h"
#include "verbs_provider/base/work_queue.h"
#include "verbs_provider/context/context.h"

namespace rocemu::provider {

/// Copies all data of the list to `behind_list`, which has space for abi::kMaxCarried bytes, or
/// into a slot, and notes this in the WQE. The daemon reads the message instead in these cases:
/// with `--exact-memory`; if the message is too long; if no slot is free; if the data is not in
/// memory that this process registered under its own addresses, or is not mapped. The caller holds
/// the queue's lock, and the WQE is the queue's next one.
void carry(ibv_context* context, const ibv_sge* list, uint32_t count, std::byte* behind_list,
           WorkQueue& queue, abi::SendWqe& wqe);

/// Frees the slots of these WQEs of the queue, which are finished or were never posted.
void release_slots(Context::Parts& parts, WorkQueue& queue, uint32_t begin, uint32_t end);

}  // namespace rocemu::provider
