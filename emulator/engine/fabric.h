// A fabric: its devices and clients, the parts of the engine that serve them, and the loop that
// gives each part its turn.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "emulator/engine/admission.h"
#include "emulator/engine/adversarial/adversary.h"
#include "emulator/engine/base/frame.h"
#include "emulator/engine/base/host_memory.h"
#include "emulator/engine/cm/connection_manager.h"
#include "emulator/engine/cm/environment.h"
#include "emulator/engine/config.h"
#include "emulator/engine/events.h"
#include "emulator/engine/faults/fault_injector.h"
#include "emulator/engine/link/arrivals.h"
#include "emulator/engine/link/link.h"
#include "emulator/engine/link/network_crossing.h"
#include "emulator/engine/link/packet_run.h"
#include "emulator/engine/link/short_requests.h"
#include "emulator/engine/link/switch.h"
#include "emulator/engine/objects/completion_delivery.h"
#include "emulator/engine/objects/objects.h"
#include "emulator/engine/step.h"
#include "emulator/engine/transport/context.h"
#include "emulator/engine/transport/qp_scheduler.h"
#include "emulator/engine/transport/transmitter.h"
#include "emulator/engine/verbs/command_context.h"
#include "emulator/engine/verbs/leaving_clients.h"
#include "emulator/engine/write_races.h"

namespace rocemu::engine {

class Fabric {
  FramePool frames_;  // before all parts that may keep a frame
  const FabricConfig config_;

 public:
  Fabric(FabricConfig config, HostMemory& program_memory);

  void begin_step(Instant now, Outputs& outputs);
  /// Makes run() expire the timers of QPs and connections that are due, after the frames in flight
  /// have arrived.
  void begin_expiry();
  /// Handles frames that arrive from outside the fabric.
  void receive(const ReceivedFrames& input);
  /// Works until nothing more can be done at this time, or the step has moved its maximum number of
  /// frames.
  void run();
  std::optional<Instant> next_deadline();
  /// Returns the next deadline, apart from the times at which rules change the simulated network.
  std::optional<Instant> next_deadline_of_work();
  /// Returns whether nothing is in flight and no request waits for an answer. State that is merely
  /// kept for a while, such as timewait, does not count.
  bool is_idle() const;
  bool has_frames_under_way() const { return !link.empty() || !crossing.empty(); }

  /// Continues requests that wait for memory (MemoryResult::kNotYet), which may have been provided.
  void go_on_with_memory();
  void remove_device(DeviceIndex index);
  /// Delivers everything that `--adversarial` delays for the client.
  void deliver_delayed(ClientId client);

  // ---- The parts, in the order of their construction ----
  Step step;
  Objects objects;
  Link link;
  NetworkCrossing crossing;
  Arrivals arrivals;  // that this step has received
  Switch network;
  EventDelivery event_delivery;
  const std::unique_ptr<adversarial::Adversary> adversary;  // null unless a class is enabled
  faults::FaultInjector faults;
  CompletionDelivery completions;
  QpScheduler scheduler;
  Transmitter transmitter;
  TransportContext transport;
  WriteRaces write_races;
  cm::Environment environment;
  cm::ConnectionManager connections;
  Admission admission;
  CommandContext commands;
  LeavingClients leaving;

  const FabricConfig& config() const { return config_; }

 private:
  void go_on_with_adversary();
  void go_on_with_network();
  bool makes_runs() const;
  void take_arrivals();
  /// Moves the QPs that must fail to the error state: the users of CQs that overran, and QPs for
  /// which a rule injected an error event.
  void fail_qps();
  /// Returns the next timeout of a QP or of a connection.
  Instant next_timeout();
  bool may_expire();
  void expire_timers();
  bool may_produce_frames() const;

  PacketRun run_;
  ShortRequests short_requests_;
  bool expiring_ = false;  // timers are due
  /// The number of quanta that had been scheduled when the timers began to expire.
  std::optional<uint64_t> last_quantum_before_expiry_;
};

}  // namespace rocemu::engine
