// The words of a client's doorbell ring by which daemon and client inform each other. The daemon
// publishes the number of the round, the operations to ask for, and whether it sleeps; the client
// publishes its processor and which of its threads yield. Before the hello there is no ring: until
// then the daemon's words are dropped, and nothing is known about the client.
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

  /// The initial values for a new client. abi::DoorbellRing explains each.
  struct State {
    bool is_virtual = false;
    bool has_exact_memory = false;
    uint32_t round = 0;
    uint32_t asked_for = 0;
    uint32_t pollers_per_processor = 0;
    engine::Instant now{};
  };
  /// Stores the initial values, after the doorbell memory of the queues has been set. No client
  /// sees the memory yet.
  void begin(const State& state);

  /// Begins a round on a virtual clock: publishes the time, and lets the client's threads poll
  /// again.
  void begin_round(uint32_t round, engine::Instant now) const;
  /// Sets the operations for which the client must ask from now on.
  void set_asked_for(uint32_t operations) const;
  void set_pollers_per_processor(uint32_t pollers) const;

  /// See ClientQueues.
  void set_daemon_sleeping(bool sleeping) const;
  bool has_doorbells() const;

  /// Returns the client's processor at its latest doorbell (abi::DoorbellRing::client_processor).
  uint32_t client_processor() const;
  /// Returns whether one of the client's threads is yielding at this moment
  /// (abi::DoorbellRing::giving_way).
  bool gives_way() const { return threads_giving_way() != 0; }
  /// Returns the number of the client's threads that are yielding. The client's number is believed
  /// only up to a limit: with more threads, a turn of all of them could not be distinguished from a
  /// time slice of other work.
  uint32_t threads_giving_way() const;

 private:
  const ClientQueues& queues_;
  bool has_begun_ = false;
};

}  // namespace rocemu::daemon
