// Delivers the engine's outputs: completions and events to the sessions, and frames to the network
// and the captures. An event never overtakes its completion.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "emulator/capture/pcap_writer.h"
#include "emulator/daemon/base/clock.h"
#include "emulator/daemon/client/client_memory.h"
#include "emulator/daemon/client/session_table.h"
#include "emulator/daemon/rdmacm/cm_session_table.h"
#include "emulator/daemon/run/recent_events.h"
#include "emulator/daemon/run/watched_cqs.h"
#include "emulator/engine/events.h"

namespace rocemu::daemon {

/// The destination of frames that leave the fabric
class Network {
 public:
  virtual ~Network() = default;
  /// Takes over the frame and sends it soon. Must release the frame before the engine is destroyed.
  virtual void transmit(engine::DeviceIndex from, engine::Frame frame) = 0;
  virtual void change_group(const engine::GroupChange& change) = 0;
};

class OutputDelivery {
 public:
  /// `capture` may be null.
  OutputDelivery(ClientMemory& memory, SessionTable& sessions, CmSessionTable& cm_sessions,
                 const Clock& clock, capture::PcapWriter* capture)
      : memory_(memory),
        sessions_(sessions),
        cm_sessions_(cm_sessions),
        clock_(clock),
        capture_(capture) {}

  /// Connects the network, which must exist for as long as it is used. Without a network, frames
  /// that leave the fabric are dropped.
  void connect(Network& network) { network_ = &network; }
  /// Starts to write the frames that leave the captured ports of a simulated network. `captures`
  /// must outlive this object.
  void capture_ports(std::span<const std::unique_ptr<capture::PcapWriter>> captures) {
    port_captures_ = captures;
  }
  /// Ends all captures.
  void end_capture() {
    capture_ = nullptr;
    port_captures_ = {};
  }
  /// Starts to keep the latest frames and completions in memory.
  void keep_recent() { recent_.emplace(); }
  /// Returns the latest frames and completions; null if keep_recent() was not called.
  const RecentEvents* recent() const { return recent_ ? &*recent_ : nullptr; }
  /// Sets the callback for devices that were removed, or whose port or GID table changed by itself.
  void on_device_changed(std::function<void(engine::DeviceIndex)> callback) {
    device_changed_ = std::move(callback);
  }

  WatchedCqs& watched_cqs() { return watched_cqs_; }

  /// Starts to hold outputs back. Clients then see an output when release_outputs() is called,
  /// which delivers all of them at the same time, or when they get a reply. So no client gets ahead
  /// of the others during their turns. Each release begins a round.
  void hold_outputs() { holding_ = true; }
  /// Delivers the outputs that are held back. Returns whether there were any.
  bool release_outputs();

  /// Delivers the outputs, or holds them back.
  void apply(std::vector<engine::Output>& outputs);
  void deliver(const std::vector<engine::PortCapture>& frames);
  /// Reports the devices that have changed. Must be called after the outputs have been cleared,
  /// because querying a device is a separate step.
  void report_changed_devices();

 private:
  void add(CompletionQueue& cq, const engine::Completion& completion);
  void publish(CompletionQueue& cq, engine::ClientId client, engine::CqId id);
  void deliver_at_once(const std::vector<engine::Output>& outputs);
  void hold(engine::Output& output);
  void deliver_other(const engine::Output& output);
  void deliver(const engine::CqFailed& output);
  void deliver(const engine::DeviceLost& output);
  void deliver(const engine::CompletionEvent& output);
  void deliver(const engine::AsyncEvent& output);
  void deliver(const engine::ClientViolation& output);
  void deliver(const engine::TransmitFrame& output);
  void deliver(const engine::GroupChange& output);
  void deliver(const engine::FrameTrace& output);
  void deliver(const engine::RuleFired& output);
  void deliver(const engine::DeviceChanged& output);
  void deliver(const engine::KillProcess& output);
  void deliver(const engine::CmEvent& output) { cm_sessions_.deliver(output); }

  ClientMemory& memory_;
  SessionTable& sessions_;
  CmSessionTable& cm_sessions_;
  const Clock& clock_;
  Network* network_ = nullptr;
  capture::PcapWriter* capture_;
  std::span<const std::unique_ptr<capture::PcapWriter>> port_captures_;
  std::optional<RecentEvents> recent_;
  std::function<void(engine::DeviceIndex)> device_changed_;
  std::vector<engine::DeviceIndex> changed_devices_;
  WatchedCqs watched_cqs_{sessions_};
  bool holding_ = false;
  std::vector<std::pair<engine::ClientId, engine::CqId>> held_cqs_;  // with new completions
  std::vector<engine::Output> held_;                                 // events
};

}  // namespace rocemu::daemon
