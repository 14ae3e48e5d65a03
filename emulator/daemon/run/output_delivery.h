// Delivers the engine's outputs: completions and events to the sessions, frames to the network and
// the capture. An event never overtakes its completion.
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
#include "emulator/engine/events.h"

namespace rocemu::daemon {

/// The destination of frames for addresses outside the fabric
class Network {
 public:
  virtual ~Network() = default;
  /// Takes the frame now and sends it soon; must release the frame before the engine is destroyed.
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

  /// Connects the network, which must outlive its use. Without one, frames to addresses outside the
  /// fabric are dropped.
  void connect(Network& network) { network_ = &network; }
  /// Starts to write the frames that leave captured ports of a simulated network. The writers must
  /// outlive this object.
  void capture_ports(std::span<const std::unique_ptr<capture::PcapWriter>> captures) {
    port_captures_ = captures;
  }
  /// Ends the capture.
  void end_capture() {
    capture_ = nullptr;
    port_captures_ = {};
  }
  /// Starts to keep the latest frames and completions.
  void keep_recent() { recent_.emplace(); }
  /// Returns null without keep_recent().
  const RecentEvents* recent() const { return recent_ ? &*recent_ : nullptr; }
  /// Sets the callback for devices whose port or GID table changed by itself, or that were removed.
  void on_device_changed(std::function<void(engine::DeviceIndex)> callback) {
    device_changed_ = std::move(callback);
  }

  /// Starts to hold outputs: clients see them only when release_outputs() is called, all at the
  /// same time, or in a reply. So no client runs ahead of the others during their turns. Each
  /// release begins a round.
  void hold_outputs() { holding_ = true; }
  /// Releases the held outputs. Returns whether there were any.
  bool release_outputs();

  /// Delivers or holds these outputs.
  void apply(std::vector<engine::Output>& outputs);
  void deliver(const std::vector<engine::PortCapture>& frames);
  /// Reports devices that changed, after the outputs have been cleared: querying a device is a
  /// separate step.
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
  bool holding_ = false;
  std::vector<std::pair<engine::ClientId, engine::CqId>> held_cqs_;  // with new completions
  std::vector<engine::Output> held_;                                 // events
};

}  // namespace rocemu::daemon
