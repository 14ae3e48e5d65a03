// The engine with its surroundings: the clock goes in, and outputs go to the sessions' queues and
// sockets and to the capture.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "emulator/capture/pcap_writer.h"
#include "emulator/daemon/base/clock.h"
#include "emulator/daemon/base/engine_port.h"
#include "emulator/daemon/client/client_memory.h"
#include "emulator/daemon/client/session_table.h"
#include "emulator/daemon/rdmacm/cm_session_table.h"
#include "emulator/daemon/run/finding_log.h"
#include "emulator/daemon/run/process_numbers.h"
#include "emulator/daemon/run/recent_events.h"
#include "emulator/engine/engine.h"
#include "emulator/journal/recording.h"

namespace rocemu::daemon {

/// Where frames go that are for no device of the fabric.
class Network {
 public:
  virtual ~Network() = default;
  /// Takes the frame now and sends it soon; it must be gone before the engine is.
  virtual void transmit(engine::DeviceIndex from, engine::Frame frame) = 0;
  virtual void change_group(const engine::GroupChange& change) = 0;
};

class EngineHost : public EnginePort {
 public:
  /// `capture` and `recording` may be null.
  EngineHost(engine::FabricConfig config, ClientMemory& memory, SessionTable& sessions,
             CmSessionTable& cm_sessions, const Clock& clock, capture::PcapWriter* capture,
             journal::Recording* recording);

  /// Without one, the cables end nowhere. It must outlive its use.
  void connect(Network& network) { network_ = &network; }

  /// Notes the time at which the frames arrive that receive() is called for next.
  void begin_arrivals() { arrival_time_ = clock_.now(); }
  /// One burst is one step.
  void receive(std::span<const engine::ReceivedFrame> frames);

  /// From now on nothing is recorded or captured: what comes is not of the run.
  void end_record();

  void submit(const engine::Input& input) override;
  void name_process(const engine::Owner& owner, pid_t pid) override;
  size_t most_wqes() const override { return most_wqes_; }
  /// A recording names each receive. No frame depends on how they come.
  size_t most_receives() const override { return recording_ == nullptr ? most_wqes_ : 1; }
  abi::Reply command(engine::ClientId client, const abi::Request& request) override;
  engine::CmReply cm_command(const engine::CmCommand& command) override;

  /// Lets the engine go on if it wanted to by then. True if it did. All that came before is to be
  /// handled already, since timers may expire.
  bool tick_if_due(engine::Instant by);
  /// When it wants to, by itself. Computed once after each step, since every round asks.
  std::optional<engine::Instant> next_deadline();

  /// From now on clients see what was done only when release_outputs() is called, all at once, or
  /// when they are answered: so that none runs ahead while the others' turn is not over. With that
  /// a round begins.
  void hold_outputs() { holding_ = true; }
  /// True if there was anything.
  bool release_outputs();

  /// From now on what is wrong by the rules of the sanitizer is written to that directory.
  void keep_findings(const std::string& directory);

  /// How many inputs there have been but ticks, modulo 2^32: what programs did, and by the control
  /// socket users.
  uint32_t inputs() const { return inputs_; }

  /// From now on the latest frames and completions are kept.
  void keep_recent() { recent_.emplace(); }
  /// Null without that.
  const RecentEvents* recent() const { return recent_ ? &*recent_ : nullptr; }

  engine::FabricSnapshot snapshot() const { return engine_.snapshot(); }
  std::vector<engine::faults::RuleReport> rule_reports() const { return engine_.rule_reports(); }
  std::vector<wire::IpAddress> addresses(engine::DeviceIndex device) const {
    return engine_.addresses(device);
  }
  bool has_device(engine::DeviceIndex device) const { return engine_.has_device(device); }
  bool is_idle() const { return engine_.is_idle(); }
  bool has_frames_under_way() const { return engine_.has_frames_under_way(); }
  bool is_releasing() const { return engine_.is_releasing(); }
  bool paused() const { return engine_.paused(); }
  std::span<const uint8_t> next_frame() { return engine_.next_frame(); }
  bool has_next_event() { return engine_.has_next_event(); }

  /// Called when a device's port or GID table changed by itself, or it was pulled out.
  void on_device_changed(std::function<void(engine::DeviceIndex)> callback) {
    device_changed_ = std::move(callback);
  }

  /// What the device says of itself; asked as a client of its own that leaves again.
  struct DeviceFacts {
    abi::DeviceAttr device;
    abi::PortAttr port;
  };
  DeviceFacts device_facts(engine::DeviceIndex device);

 private:
  void begin_batch() override;
  void end_batch() override;
  void step(const engine::Input& input) { step(clock_.now(), input); }
  void step(engine::Instant now, const engine::Input& input);
  void add(CompletionQueue& cq, const engine::Completion& completion);
  void publish(CompletionQueue& cq, engine::ClientId client, engine::CqId id);
  void apply();
  void tell_of_changed_devices();
  void hold(engine::Output& output);
  void deliver_other(const engine::Output& output);
  /// Its device and process, for a finding.
  FindingLog::Owner owner_of(engine::ClientId client) const;
  void write_findings();
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
  engine::Instant arrival_time_{};
  std::optional<std::optional<engine::Instant>> deadline_;  // if asked for since then
  std::optional<engine::Instant> batch_time_;  // of the inputs of a batch, while there is one
  Network* network_ = nullptr;
  capture::PcapWriter* capture_;
  journal::Recording* recording_;
  std::vector<std::string> device_names_;
  size_t most_wqes_;
  std::optional<RecentEvents> recent_;
  std::optional<FindingLog> findings_;
  uint32_t inputs_ = 0;
  uint32_t facts_client_ = 0xffff'ffff;  // ids are used once, and those of sessions count up from
                                         // 1: see journal::kFirstOwnClient
  std::function<void(engine::DeviceIndex)> device_changed_;
  std::vector<engine::DeviceIndex> changed_devices_;
  ProcessNumbers process_numbers_;
  bool holding_ = false;
  std::vector<std::pair<engine::ClientId, engine::CqId>> held_cqs_;  // with new completions
  std::vector<engine::Output> held_;                                 // events
  engine::Engine engine_;
  engine::Outputs outputs_;  // behind the engine, whose frames it holds: goes first
};

}  // namespace rocemu::daemon
