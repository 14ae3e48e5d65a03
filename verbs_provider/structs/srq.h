// A shared receive queue and an XRC domain in the client
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>

#include "verbs_provider/base/objects.h"
#include "verbs_provider/base/work_queue.h"
#include "verbs_provider/structs/cq.h"
#include "verbs_provider/structs/custom_memory.h"

namespace rocemu::provider {

/// One opening of an XRC domain. The daemon has one domain for all openings of a file.
struct Xrcd {
  ibv_xrcd base;  // must be first

  uint32_t handle = 0;
  /// The number of users: the application, until it closes the domain, and the existing SRQs and
  /// QPs that were created with this opening. The last user frees the struct.
  std::atomic<uint32_t> users{1};
};

/// Holds an XRC domain. Every object that was created with it holds it until its destruction. A
/// null pointer is ignored.
inline void hold(Xrcd* xrcd) {
  if (xrcd != nullptr) xrcd->users.fetch_add(1, std::memory_order_relaxed);
}
inline void release(Xrcd* xrcd) {
  if (xrcd != nullptr && xrcd->users.fetch_sub(1, std::memory_order_acq_rel) == 1) dispose(xrcd);
}

struct Srq {
  ibv_srq base;  // must be first

  CustomMemory custom_memory;
  ibv_srq_type type = IBV_SRQT_BASIC;
  Cq* cq = nullptr;      // of an XRC SRQ; other SRQs use the CQs of their QPs
  Xrcd* xrcd = nullptr;  // of an XRC SRQ
  WorkQueue recv;
  /// For an XRC SRQ: how many completions its CQ had received when the SRQ was created. Those
  /// belong to an earlier SRQ with the same number. Not used by other SRQs: see WorkQueue.
  uint64_t first_completion = 0;

  bool is_xrc() const { return type == IBV_SRQT_XRC; }
};

}  // namespace rocemu::provider
