// Takes doorbells from a client's ring, checks them against the daemon's own counts, and passes the
// announced work to the engine. The client owns the memory and may write anything there at any
// time: each word is copied once, checked, and then used.
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

  /// Returns the present end of the client's doorbells, for the limit of run().
  static uint32_t end_of(const ClientQueues& client);

  /// Passes on all posted receives and all requests for notification, before other doorbells.
  /// Subtracts one from `budget` for each series of doorbells of one queue and for each WQE; what
  /// remains is handled next time. Returns null, or the violation.
  const char* take_receives(ClientQueues& client, uint32_t& budget);

  /// Handles the doorbells up to `limit`, and at most `budget` of them and their WQEs, so that no
  /// client delays the others. For sends it takes at most kMaxSteps steps of the engine, each of
  /// which may move many frames.
  Result run(ClientQueues& client, uint32_t limit, uint32_t budget);

  /// Handles all doorbells up to `limit` in an order that does not depend on which of the client's
  /// threads was first: receives, arms, sends, each by the number of the object. If the budget is
  /// used up, the next call continues, and `limit` applies again when all of them are done.
  Result run_by_object(ClientQueues& client, uint32_t limit, uint32_t budget);

  static constexpr uint32_t kMaxSteps = 32;

 private:
  /// Each function returns the violation, or null. If the budget is used up, a post may stop; its
  /// doorbell is then handled again next time and continues at the count seen.
  const char* handle(ClientQueues& client, const abi::Doorbell& bell, uint32_t& budget);
  static abi::Doorbell copy(const ClientQueues& client, uint32_t n);
  static uint32_t join(const ClientQueues& client, uint32_t n, abi::Doorbell& bell, uint32_t limit);
  static void pass_finished(ClientQueues& client, uint32_t bells);
  static const WorkQueueView* receive_queue_of(ClientQueues& client, const abi::Doorbell& bell);
  /// `together` is the maximum number of WQEs that are submitted at once.
  template <class Submit>
  const char* post(ClientQueues& client, WorkQueueView& work, uint64_t value, uint32_t& budget,
                   size_t together, Submit submit);
  const char* arm(ClientQueues& client, const abi::Doorbell& bell);

  EnginePort& engine_;
  // For run_by_object(), while some are left: the doorbells up to bells_end_ in order.
  std::vector<abi::Doorbell> bells_;
  size_t next_bell_ = 0;
  uint32_t bells_end_ = 0;
  uint32_t steps_left_ = 0;      // of the engine, for sends
  std::vector<std::byte> wqes_;  // the private copy of the present WQEs
  bool unfinished_ = false;      // whether the present post is
};

}  // namespace rocemu::daemon
