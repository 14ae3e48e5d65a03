// The NIC as a pure function: step() turns an event into actions. The engine reads no clock, calls
// no operating system, and gives the same outputs for the same inputs.
#pragma once

#include <memory>
#include <optional>

#include "emulator/engine/base/host_memory.h"
#include "emulator/engine/base/pausable_clock.h"
#include "emulator/engine/config.h"
#include "emulator/engine/events.h"
#include "emulator/engine/faults/rule.h"
#include "emulator/engine/snapshot.h"

namespace rocemu::engine {

class Fabric;
namespace cm {
class RdmaCm;
}  // namespace cm

class Engine {
 public:
  /// `memory` must outlive the engine. Outputs contain frames, and must not outlive the engine.
  Engine(FabricConfig config, HostMemory& memory);
  ~Engine();

  /// Handles an input, and appends to `outputs`, which the caller clears. `outer_now` never
  /// decreases. One step moves a bounded number of frames; if work remains, next_deadline() is not
  /// after `outer_now`.
  void step(Instant outer_now, const Input& input, Outputs& outputs);

  /// Returns the latest time at which step() must be called with a Tick, or nothing if only an
  /// input can cause work.
  std::optional<Instant> next_deadline();

  /// Returns whether rules for the simulated network have a deadline and nothing else has one. No
  /// program waits for such a deadline.
  bool awaits_only_rules();

  /// Returns whether nothing is in flight and no request waits for an answer, so that only an input
  /// can cause something that programs see. Changes nothing.
  bool is_idle() const;
  /// Returns whether a frame is in flight inside the fabric. Frames that left the fabric are not
  /// counted.
  bool has_frames_under_way() const;
  /// Returns whether a frame is in flight in a simulated network.
  bool has_frames_in_network() const;
  /// Returns the simulated network, or null without FabricConfig::network. Observers may read it
  /// between steps, because it changes only in step().
  SimulatedNetwork* simulated_network();
  const SimulatedNetwork* simulated_network() const;

  /// Returns whether clients that have ended still have objects, which the next steps destroy.
  bool is_releasing() const;

  /// Returns objects, states and counters for `rocemu show`, without changing anything.
  FabricSnapshot snapshot() const;

  /// Makes the engine detect races between WRITEs from now on (Outputs::misuses). This makes each
  /// post slower.
  void watch_write_races();

  /// Returns the active rules and how often each has acted, without changing anything.
  std::vector<faults::RuleReport> rule_reports() const;
  /// Returns the operations before which clients must send a request, because a rule may make them
  /// fail (abi::DoorbellRing::asked_for).
  uint32_t asked_for() const;

  /// Returns the next frame to arrive; empty if no frame is in flight, or if the clock is paused
  /// and a timer is due before the frame arrives. The result is valid until the next step.
  std::span<const uint8_t> next_frame();
  /// Returns whether anything is due now or at a later time. Called while the clock is paused.
  bool has_next_event() { return next_event_time().has_value(); }
  bool paused() const { return clock_.paused(); }
  /// Returns the present GID table of the device.
  std::vector<wire::IpAddress> addresses(DeviceIndex device) const;
  const DeviceProfile& profile(DeviceIndex device) const;
  /// Returns whether the device exists, which is false if it was removed.
  bool has_device(DeviceIndex device) const;

 private:
  std::optional<Instant> next_event_time();
  /// Moves the paused clock to the arrival of the next frame, unless `release` lets no frame
  /// arrive. If no frame can arrive next, moves the clock to the next deadline.
  void move_time(const ReleaseFrames& release);
  /// Removes the devices that rules have marked for removal. Returns whether there were any.
  bool remove_devices();

  PausableClock clock_;
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<cm::RdmaCm> rdma_cm_;
};

}  // namespace rocemu::engine
