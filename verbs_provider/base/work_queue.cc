#include "verbs_provider/base/work_queue.h"

#include <bit>
#include <cerrno>

namespace rocemu::provider {

int open_queue(const SharedPiece& memory, const abi::WorkQueueLayout& layout, uint32_t max_wr,
               uint32_t max_sge, uint32_t min_stride, WorkQueue* queue) {
  if (layout.slots == 0) return max_wr == 0 ? 0 : EIO;
  if (!std::has_single_bit(layout.slots) || layout.slots < max_wr || layout.stride < min_stride) {
    return EIO;
  }
  const uint64_t bytes = uint64_t{layout.slots} * layout.stride;
  if (bytes > memory.size() || layout.offset > memory.size() - bytes) return EIO;
  queue->slots = memory.at(layout.offset);
  queue->slot_mask = layout.slots - 1;
  queue->stride = layout.stride;
  queue->max_wr = max_wr;
  queue->max_sge = max_sge;
  return 0;
}

}  // namespace rocemu::provider
