// A queue pair as the client sees it.
#pragma once

#include <atomic>
#include <cstdint>

#include "emulator/abi/control.h"
#include "emulator/abi/rings.h"
#include "verbs_provider/cq.h"
#include "verbs_provider/lock.h"
#include "verbs_provider/private_abi.h"
#include "verbs_provider/shared_memory.h"

namespace rocemu::provider {

/// One of a QP's work queues: a ring of slots in shared memory.
struct WorkQueue {
  std::byte* slots = nullptr;
  uint32_t slot_mask = 0;
  uint32_t stride = 0;
  uint32_t max_wr = 0;
  uint32_t max_sge = 0;

  Mutex lock;           // of posting
  uint64_t posted = 0;  // WQEs ever written; a RESET does not begin anew
  /// WQEs of which the application has seen the end: their completion, or that of a later one, was
  /// polled. What makes a queue full does not depend on how fast the daemon is.
  std::atomic<uint32_t> released{0};
  /// Where the CQ stood when the QP was made: earlier completions are of a QP with the same number.
  uint64_t first_completion = 0;

  bool is_full() const {
    return static_cast<uint32_t>(posted) - released.load(std::memory_order_acquire) >= max_wr;
  }
  std::byte* next_slot() const { return slots + (posted & slot_mask) * uint64_t{stride}; }
};

/// Work requests between wr_start() and wr_complete() of ibv_wr_post(3). Guarded by the send
/// queue's lock, which wr_start() takes and wr_complete() or wr_abort() gives back.
struct WorkRequestBuilder {
  uint64_t posted_before = 0;
  int error = 0;          // the first one; ends what the session can still do
  bool building = false;  // `wqe` belongs in the next slot
  abi::SendWqe wqe{};
};

struct Qp {
  VerbsQp verbs;  // must be first

  SharedMemory memory;
  WorkQueue send;
  WorkQueue recv;
  WorkRequestBuilder builder;
  uint32_t max_inline_data = 0;
  std::atomic<abi::QpState> state{abi::QpState::kReset};  // as last modified by the application
  std::atomic<uint32_t> generation{0};                    // see abi::Cqe::qp_generation

  Cq* send_cq() const { return reinterpret_cast<Cq*>(verbs.qp.send_cq); }
  Cq* recv_cq() const { return reinterpret_cast<Cq*>(verbs.qp.recv_cq); }
};

}  // namespace rocemu::provider
