// The words of a client's doorbell ring by which daemon and client say how things are with them:
// which round it is, what to ask for, whether the daemon sleeps; where the client runs, and which
// of its threads yield. Before the hello there is no ring: until then nothing that the daemon says
// arrives, and nothing is known of the client.
#pragma once

#include <cstdint>

#include "emulator/abi/rings.h"
#include "emulator/daemon/client/client_queues.h"
#include "emulator/engine/base/time.h"

namespace rocemu::daemon {

class ClientSignals {
 public:
  /// `queues` must outlive it.
  explicit ClientSignals(const ClientQueues& queues) : queues_(queues) {}

  /// What holds for a client that comes now; abi::DoorbellRing explains each.
  struct State {
    bool is_virtual = false;
    bool has_exact_memory = false;
    uint32_t round = 0;
    uint32_t asked_for = 0;
    uint32_t pollers_per_processor = 0;
    engine::Instant now{};
  };
  /// Begins, when the doorbell memory of the queues has been set. No client sees it yet.
  void begin(const State& state);

  /// On a virtual clock: tells the client the time, and lets its threads look again for what they
  /// wait for.
  void begin_round(uint32_t round, engine::Instant now) const;
  /// Says which operations the client has to ask for from now on.
  void set_asked_for(uint32_t operations) const;
  void set_pollers_per_processor(uint32_t pollers) const;

  /// See ClientQueues.
  void set_daemon_sleeping(bool sleeping) const;
  bool has_doorbells() const;

  /// Returns where the client was at its latest doorbell (abi::DoorbellRing::client_processor).
  uint32_t client_processor() const;
  /// Returns whether one of its threads yields at this moment (abi::DoorbellRing::giving_way).
  bool gives_way() const { return threads_giving_way() != 0; }
  /// Returns how many do. What a client writes there is believed up to a number at which a time
  /// slice of others can still be told from a turn of so many.
  uint32_t threads_giving_way() const;

 private:
  const ClientQueues& queues_;
  bool has_begun_ = false;
};

}  // namespace rocemu::daemon
