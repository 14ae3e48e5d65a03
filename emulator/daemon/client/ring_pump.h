// Takes doorbells out of a client's ring, checks them against the daemon's own counts, and hands
// the engine what they announce. The client owns the memory and may write anything there at any
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
    bool more = false;                // the budget ran out first
    const char* violation = nullptr;  // what the client did that cannot be; end it
  };

  explicit RingPump(EnginePort& engine) : engine_(engine) {}

  /// Where the client's doorbells end now: what run() takes as its limit.
  static uint32_t end_of(const ClientQueues& client);

  /// Hands over what has been posted to receive queues and all requests for notification, ahead of
  /// other doorbells, and subtracts from `budget` one for each row of doorbells of one queue and
  /// each WQE; what is left then has its turn next time. Null, or what is wrong.
  const char* take_receives(ClientQueues& client, uint32_t& budget);

  /// Handles the doorbells up to `limit`, and at most `budget` of them and their WQEs, so that no
  /// client keeps the others waiting; of sends, at most kMaxSteps steps of the engine, each of
  /// which may move many frames.
  Result run(ClientQueues& client, uint32_t limit, uint32_t budget);

  /// Handles all doorbells up to `limit` in an order that does not depend on which of the client's
  /// threads was first: receives, arms, sends, each by the number of the object. With the budget
  /// used up the next call goes on, and `limit` counts again when all of them are done.
  Result run_by_object(ClientQueues& client, uint32_t limit, uint32_t budget);

  static constexpr uint32_t kMaxSteps = 32;

 private:
  /// Each returns what is wrong, or null. A post may stop with the budget used up; its doorbell is
  /// then looked at again next time and continues at the count seen.
  const char* handle(ClientQueues& client, const abi::Doorbell& bell, uint32_t& budget);
  static abi::Doorbell copy(const ClientQueues& client, uint32_t n);
  static uint32_t join(const ClientQueues& client, uint32_t n, abi::Doorbell& bell, uint32_t limit);
  static void pass_finished(ClientQueues& client, uint32_t bells);
  static const WorkQueueView* receive_queue_of(ClientQueues& client, const abi::Doorbell& bell);
  /// `together`: the most WQEs that are submitted at once.
  template <class Submit>
  const char* post(ClientQueues& client, WorkQueueView& work, uint64_t value, uint32_t& budget,
                   size_t together, Submit submit);
  const char* arm(ClientQueues& client, const abi::Doorbell& bell);

  EnginePort& engine_;
  // Of run_by_object(), while something is left of them: the doorbells up to bells_end_ in order.
  std::vector<abi::Doorbell> bells_;
  size_t next_bell_ = 0;
  uint32_t bells_end_ = 0;
  uint32_t steps_left_ = 0;      // of the engine, for sends
  std::vector<std::byte> wqes_;  // the private copy of the WQEs at hand
  bool unfinished_ = false;      // of the post at hand
};

}  // namespace rocemu::daemon
