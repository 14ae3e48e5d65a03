// Connects the engine to the daemon: passes the time with each input, records inputs and outputs,
// and delivers outputs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emulator/capture/pcap_writer.h"
#include "emulator/daemon/base/clock.h"
#include "emulator/daemon/base/engine_port.h"
#include "emulator/daemon/client/client_memory.h"
#include "emulator/daemon/client/session_table.h"
#include "emulator/daemon/rdmacm/cm_session_table.h"
#include "emulator/daemon/run/finding_log.h"
#include "emulator/daemon/run/output_delivery.h"
#include "emulator/daemon/run/process_numbers.h"
#include "emulator/engine/engine.h"
#include "emulator/journal/recording.h"

namespace rocemu::daemon {

class EngineHost : public EnginePort {
 public:
  /// `capture` and `recording` may be null.
  EngineHost(engine::FabricConfig config, ClientMemory& memory, SessionTable& sessions,
             CmSessionTable& cm_sessions, const Clock& clock, capture::PcapWriter* capture,
             journal::Recording* recording);

  /// Notes that the frames of the following calls of receive() arrived now.
  void begin_arrivals() { arrival_time_ = clock_.now(); }
  /// Passes a burst of frames to the engine, as one step.
  void receive(std::span<const engine::ReceivedFrame> frames);

  /// Ends the recording and the captures, because further inputs do not belong to the run.
  void end_record();

  void submit(const engine::Input& input) override;
  void name_process(const engine::Owner& owner, pid_t pid) override;
  size_t most_wqes() const override { return most_wqes_; }
  /// Returns 1 while recording, so that the recording has a separate input for each receive. The
  /// number of receives in an input has no effect on frames.
  size_t most_receives() const override { return recording_ == nullptr ? most_wqes_ : 1; }
  abi::Reply command(engine::ClientId client, const abi::Request& request) override;
  engine::CmReply cm_command(const engine::CmCommand& command) override;

  /// Lets the engine act if its next deadline is not after `by`. Returns whether it acted. All
  /// earlier inputs must have been handled, since timers may expire.
  bool tick_if_due(engine::Instant by);
  /// Returns the time at which the engine wants to act by itself; nothing if it does not. The
  /// result is kept until the next step, since every round calls this.
  std::optional<engine::Instant> next_deadline();
  bool awaits_only_rules() { return engine_.awaits_only_rules(); }

  /// Starts to write the findings for rules of the sanitizer to files in the directory.
  void keep_findings(const std::string& directory);

  /// Returns the number of inputs except ticks, modulo 2^32. These are the actions of programs and,
  /// through the control socket, of users.
  uint32_t inputs() const { return inputs_; }

  /// Returns the engine, which must only be queried. Every change of the engine is a step of this
  /// object.
  const engine::Engine& engine() const { return engine_; }
  const engine::DeviceProfile* profile(engine::DeviceIndex device) const override {
    return &engine_.profile(device);
  }
  std::span<const uint8_t> next_frame() { return engine_.next_frame(); }
  bool has_next_event() { return engine_.has_next_event(); }

  OutputDelivery& delivery() { return delivery_; }

  /// The attributes of a device, which are queried with a temporary client
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
  void apply();
  /// Returns the device and process of a client, for a finding.
  FindingLog::Owner owner_of(engine::ClientId client) const;
  void write_findings(size_t outputs_before);

  ClientMemory& memory_;
  SessionTable& sessions_;
  const Clock& clock_;
  engine::Instant arrival_time_{};
  std::optional<std::optional<engine::Instant>> deadline_;  // if computed since the latest step
  std::optional<engine::Instant> batch_time_;  // the time of the inputs of a batch, during one
  journal::Recording* recording_;
  std::vector<std::string> device_names_;
  size_t most_wqes_;
  std::optional<FindingLog> findings_;
  uint32_t inputs_ = 0;
  /// The id of the next temporary client of device_facts(). These ids count down, while those of
  /// sessions count up from 1 (journal::kFirstOwnClient).
  uint32_t facts_client_ = 0xffff'ffff;
  ProcessNumbers process_numbers_;
  OutputDelivery delivery_;
  engine::Engine engine_;
  engine::Outputs outputs_;  // after the engine, whose frames it holds: destroyed first
};

}  // namespace rocemu::daemon
