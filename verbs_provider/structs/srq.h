// A shared receive queue and an XRC domain in the client
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
  Cq* cq = nullptr;  // of an XRC SRQ; other SRQs use the CQs of their QPs
  WorkQueue recv;
  /// For an XRC SRQ: how many completions its CQ had received when the SRQ was created. Those
  /// belong to an earlier SRQ with the same number. Not used by other SRQs: see WorkQueue.
  uint64_t first_completion = 0;

  bool is_xrc() const { return type == IBV_SRQT_XRC; }
};

struct Xrcd {
  ibv_xrcd base;  // must be first

  uint32_t handle = 0;
};

}  // namespace rocemu::provider
