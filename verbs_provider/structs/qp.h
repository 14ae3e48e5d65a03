// A queue pair in the client
#pragma once

#include <atomic>
#include <cstdint>

#include "emulator/abi/control.h"
#include "emulator/abi/rings.h"
#include "verbs_provider/base/private_abi.h"
#include "verbs_provider/base/work_queue.h"
#include "verbs_provider/structs/cq.h"
#include "verbs_provider/structs/custom_memory.h"
#include "verbs_provider/structs/srq.h"

namespace rocemu::provider {

/// Work requests between wr_start() and wr_complete() of ibv_wr_post(3). Guarded by the send
/// queue's lock, which wr_start() takes and wr_complete() or wr_abort() releases.
struct WorkRequestBuilder {
  uint64_t posted_before = 0;
  int error = 0;          // the first error, which ends the session
  bool building = false;  // `wqe` belongs in the next slot
  bool binds = false;     // a request of this session is a bind
  uint32_t missing = 0;   // setters that must still be called
  uint32_t allowed = 0;   // setters that can be called for `wqe`: see qp_ex.cc
  abi::SendWqe wqe{};
};

struct Qp {
  VerbsQp verbs;  // must be first

  CustomMemory custom_memory;
  Xrcd* xrcd = nullptr;  // of an XRC target QP
  WorkQueue send;
  WorkQueue recv;
  WorkRequestBuilder builder;
  uint32_t builder_opcodes = 0;  // requested with IBV_QP_INIT_ATTR_SEND_OPS_FLAGS
  uint32_t max_inline_data = 0;
  uint32_t refused_opcodes = 0;  // opcodes that the device's NIC cannot post
  std::atomic<abi::QpState> state{abi::QpState::kReset};  // the device's latest answer
  std::atomic<uint32_t> generation{0};                    // see abi::Cqe::qp_generation

  Cq* send_cq() const { return reinterpret_cast<Cq*>(verbs.qp.send_cq); }
  Cq* recv_cq() const { return reinterpret_cast<Cq*>(verbs.qp.recv_cq); }
};

}  // namespace rocemu::provider
