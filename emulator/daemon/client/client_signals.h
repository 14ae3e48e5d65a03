// Reads and writes the words of a client's doorbell ring with which daemon and client inform each
// other. The daemon publishes the number of the round, the operations before which the client must
// send a request, and whether the daemon sleeps. The client publishes its processor and the number
// of its threads that yield. There is no ring before the hello: until then, nothing is published.
#pragma once

#include <cstdint>

#include "emulator/abi/rings.h"
#include "emulator/daemon/client/client_queues.h"
#include "emulator/engine/base/time.h"

namespace rocemu::daemon {

class ClientSignals {
 public:
  /// `queues` must outlive this object.
  explicit ClientSignals(const ClientQueues& queues) : queues_(queues) {}

  /// The initial values of the ring's words for a new client. abi::DoorbellRing explains each of
  /// them.
  struct State {
    bool is_virtual = false;
    bool has_exact_memory = false;
    uint32_t round = 0;
    uint32_t asked_for = 0;
    uint32_t pollers_per_processor = 0;
    engine::Instant now{};
  };
  /// Stores the initial values in the doorbell memory, which must have been set. The client does
  /// not see this memory yet.
  void begin(const State& state);

  /// Publishes the time and the number of a new round on a virtual clock, so that the client's
  /// threads poll again.
  void begin_round(uint32_t round, engine::Instant now) const;
  /// Sets the operations before which the client must send a request from now on.
  void set_asked_for(uint32_t operations) const;
  void set_pollers_per_processor(uint32_t pollers) const;

  /// Sets whether the client must write its eventfd (ClientQueues::set_daemon_sleeping).
  void set_daemon_sleeping(bool sleeping) const;
  bool has_doorbells() const;

  /// Returns the processor on which the client last rang (abi::DoorbellRing::client_processor).
  uint32_t client_processor() const;
  /// Returns whether any of the client's threads is yielding at this moment
  /// (abi::DoorbellRing::giving_way).
  bool gives_way() const { return threads_giving_way() != 0; }
  /// Returns the number of the client's threads that are yielding at this moment, but at most 512.
  /// If more threads yielded, a yield would take as long as the time slice of a thread with other
  /// work, and the daemon could not distinguish the two cases.
  uint32_t threads_giving_way() const;

 private:
  const ClientQueues& queues_;
  bool has_begun_ = false;
};

}  // namespace rocemu::daemon
