// Takes doorbells from a client's ring, checks them against the daemon's own counts, and passes the
// announced work to the engine. The client can change the memory at any time: therefore each word
// is copied once, then checked, and then used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/daemon/base/engine_port.h"
#include "emulator/daemon/client/client_queues.h"

namespace rocemu::daemon {

class RingPump {
 public:
  struct Result {
    bool worked = false;
    bool more = false;                // the budget was used up first
    const char* violation = nullptr;  // a violation of the protocol: end the client
  };

  explicit RingPump(EnginePort& engine) : engine_(engine) {}

  /// Returns the end of the doorbells that the client has rung so far, which is a limit for run().
  static uint32_t end_of(const ClientQueues& client);

  /// Handles all posted receives and all requests for notification before any other doorbells.
  /// Subtracts 1 from `budget` for each series of doorbells for one queue, and for each WQE. If the
  /// budget is used up, the next call continues. Returns the violation of the protocol, or null.
  const char* take_receives(ClientQueues& client, uint32_t& budget);

  /// Handles the doorbells up to `limit`, but at most `budget` doorbells and WQEs together, so that
  /// no client delays the others. For sends, the engine makes at most kMaxSteps steps, each of
  /// which may move many frames.
  Result run(ClientQueues& client, uint32_t limit, uint32_t budget);

  /// Handles all doorbells up to `limit` in an order that does not depend on which thread of the
  /// client was first: first receives, then arms, then sends, each sorted by the number of the
  /// object. If the budget is used up, the next call continues, and ignores its `limit` until these
  /// doorbells are done.
  Result run_by_object(ClientQueues& client, uint32_t limit, uint32_t budget);

  static constexpr uint32_t kMaxSteps = 32;

 private:
  /// Handles a doorbell. Returns the violation of the protocol, or null. If the budget is used up
  /// in the middle of a post, sets `unfinished_`; the next call for this doorbell then continues
  /// after the WQEs that were handled.
  const char* handle(ClientQueues& client, const abi::Doorbell& bell, uint32_t& budget);
  static abi::Doorbell copy(const ClientQueues& client, uint32_t n);
  static uint32_t join(const ClientQueues& client, uint32_t n, abi::Doorbell& bell, uint32_t limit);
  static void pass_finished(ClientQueues& client, uint32_t bells);
  static const WorkQueueView* receive_queue_of(ClientQueues& client, const abi::Doorbell& bell);
  /// Submits the posted WQEs of a work queue, at most `together` of them at once.
  template <class Submit>
  const char* post(ClientQueues& client, WorkQueueView& work, uint64_t value, uint32_t& budget,
                   size_t together, Submit submit);
  const char* arm(ClientQueues& client, const abi::Doorbell& bell);

  EnginePort& engine_;
  // The sorted doorbells up to bells_end_ that run_by_object() is handling; empty when all are
  // done.
  std::vector<abi::Doorbell> bells_;
  size_t next_bell_ = 0;
  uint32_t bells_end_ = 0;
  uint32_t steps_left_ = 0;      // of the engine, for sends
  std::vector<std::byte> wqes_;  // the private copy of the present WQEs
  bool unfinished_ = false;      // whether the present post is
};

}  // namespace rocemu::daemon
