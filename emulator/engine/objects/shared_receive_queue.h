// Shared receive queues: receive WQEs that several QPs use (IBTA vol 1, 10.2.9)
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/abi/control.h"
#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/linked_list.h"
#include "emulator/engine/base/work_ring.h"
#include "emulator/engine/objects/sge_list.h"

namespace rocemu::engine {

class AsyncEvents;
struct Objects;

/// A receive WQE that a message fills. The WQE was removed from its queue when the message took it.
struct ReceiveWqe {
  uint64_t wr_id = 0;
  uint32_t wqe_count = 0;    // see abi::Cqe::wqe_count
  std::optional<SrqId> srq;  // its SRQ, if it is not from the QP's own queue
  PdId pd;                   // for its L_Keys: the SRQ's own, whatever the QP's (10.2.9.1)
  CqId cq;                   // the CQ of its completion
  bool well_formed = false;  // not more SGEs than its queue allows
  uint32_t posted_sges = 0;  // the number in the WQE
  SgeList sges;
};

struct SharedReceiveQueue {
  SharedReceiveQueue(SrqId i, ClientId c, PdId p) : id(i), client(c), pd(p) {}

  SrqId id;
  ClientId client;
  PdId pd;
  abi::SrqType type = abi::SrqType::kBasic;
  std::optional<XrcdId> xrcd;  // kXrc
  CqId cq;                     // kXrc: the CQ of its WQEs
  uint64_t user_handle = 0;    // the client's ibv_srq *
  uint32_t max_wr = 0;
  uint32_t max_sge = 0;
  uint32_t limit = 0;   // armed: an event if fewer WQEs are left; 0: not armed
  uint32_t taken = 0;   // WQEs in use by messages
  uint32_t users = 0;   // QPs
  bool failed = false;  // kXrc: its CQ overran
  Links<SharedReceiveQueue> of_client;
  Links<SharedReceiveQueue> of_cq;  // kXrc
  struct Nothing {};
  WorkRing<Nothing> queue;

  bool full() const { return queue.size() + taken >= max_wr; }
};

namespace shared_receive_queue {

/// Returns the next WQE, which must exist.
ReceiveWqe oldest(const SharedReceiveQueue& srq);
/// Takes the next WQE for a message.
void take(AsyncEvents& events, SharedReceiveQueue& srq);
/// Notes that no message uses the WQE any longer, because the WQE is complete.
void finish(Objects& objects, const ReceiveWqe& wqe);
/// Puts the WQE back at the front of its SRQ, because its QP was destroyed before using the WQE.
void put_back(Objects& objects, const ReceiveWqe& wqe);
/// Raises the limit event if an armed SRQ has fewer WQEs left than its limit, and disarms the SRQ.
/// Called when a WQE is taken and when the limit is set (IBTA vol 1, 10.2.9.2).
void check_limit(AsyncEvents& events, SharedReceiveQueue& srq);

}  // namespace shared_receive_queue
}  // namespace rocemu::engine
