// A shared receive queue and an XRC domain as the client sees them.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "verbs_provider/base/work_queue.h"
#include "verbs_provider/structs/cq.h"
#include "verbs_provider/structs/custom_memory.h"

namespace rocemu::provider {

struct Srq {
  ibv_srq base;  // must be first

  CustomMemory custom_memory;
  ibv_srq_type type = IBV_SRQT_BASIC;
  Cq* cq = nullptr;  // of an XRC SRQ; those of other SRQs are their QPs'
  WorkQueue recv;
  /// Where the CQ of an XRC SRQ stood when the SRQ was made: earlier completions are of an SRQ with
  /// the same number. The QPs of other SRQs have such a mark themselves.
  uint64_t first_completion = 0;

  bool is_xrc() const { return type == IBV_SRQT_XRC; }
};

struct Xrcd {
  ibv_xrcd base;  // must be first

  uint32_t handle = 0;
};

}  // namespace rocemu::provider
