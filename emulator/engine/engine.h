// The NIC as a pure function: step() turns what happened into what is to be done. It reads no
// clock, calls no operating system, and given the same inputs gives the same outputs.
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
  /// `memory` must outlive the engine. Outputs (they hold frames) must not outlive it.
  Engine(FabricConfig config, HostMemory& memory);
  ~Engine();

  /// `outer_now` never runs backwards. Outputs are appended; the caller clears them. One step moves
  /// a bounded number of frames; if work remains, next_deadline() is not after `now`.
  void step(Instant outer_now, const Input& input, Outputs& outputs);

  /// When to call step() with a Tick at the latest; nothing if only an input can cause work.
  std::optional<Instant> next_deadline();

  /// Nothing is under way and nobody waits for an answer: only an input can cause something that
  /// programs see. Changes nothing.
  bool is_idle() const;
  /// Inside the fabric: those that left to a network are not known.
  bool has_frames_under_way() const;
  /// Null without FabricConfig::network. For observers: it changes only in step().
  SimulatedNetwork* simulated_network();

  /// Goes on destroying what clients had that are gone.
  bool is_releasing() const;

  /// For `rocemu show`: objects, states, counters. Changes nothing.
  FabricSnapshot snapshot() const;

  /// Notes races of WRITEs from now on (Outputs::misuses), which costs each post.
  void watch_write_races();

  /// The rules in force and how often each has acted. Changes nothing.
  std::vector<faults::RuleReport> rule_reports() const;
  /// What clients have to ask for before they do it (abi::DoorbellRing::asked_for).
  uint32_t asked_for() const;

  /// The frame that arrives next, if one is under way; while paused only if no timer is due before
  /// it. Valid until the next step.
  std::span<const uint8_t> next_frame();
  /// While paused: something is due now or later.
  bool has_next_event() { return next_event_time().has_value(); }
  bool paused() const { return clock_.paused(); }
  /// The device's GID table as it is now.
  std::vector<wire::IpAddress> addresses(DeviceIndex device) const;
  const DeviceProfile& profile(DeviceIndex device) const;
  /// False if it was removed.
  bool has_device(DeviceIndex device) const;

 private:
  std::optional<Instant> next_event_time();
  /// While paused: to where the next frame arrives, if it may, or else to what is due next.
  void move_time(const ReleaseFrames& release);
  /// Those that rules pulled out; true if there were any.
  bool remove_devices();

  PausableClock clock_;
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<cm::RdmaCm> rdma_cm_;
};

}  // namespace rocemu::engine
