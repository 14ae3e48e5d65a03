// The engine with its surroundings: passes the time with each input, records inputs and outputs,
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

  /// Notes the arrival time of the frames of the following calls of receive().
  void begin_arrivals() { arrival_time_ = clock_.now(); }
  /// Passes on one burst, which is one step.
  void receive(std::span<const engine::ReceivedFrame> frames);

  /// Ends recording and capturing, because further inputs do not belong to the run.
  void end_record();

  void submit(const engine::Input& input) override;
  void name_process(const engine::Owner& owner, pid_t pid) override;
  size_t most_wqes() const override { return most_wqes_; }
  /// A recording names each receive. No frame depends on the number of receives in an input.
  size_t most_receives() const override { return recording_ == nullptr ? most_wqes_ : 1; }
  abi::Reply command(engine::ClientId client, const abi::Request& request) override;
  engine::CmReply cm_command(const engine::CmCommand& command) override;

  /// Lets the engine act if it wants to act by that time. Returns whether it did. All earlier
  /// inputs must have been handled, since timers may expire.
  bool tick_if_due(engine::Instant by);
  /// Returns when the engine wants to act by itself. Computed once after each step, since every
  /// round calls this.
  std::optional<engine::Instant> next_deadline();
  bool awaits_only_rules() { return engine_.awaits_only_rules(); }

  /// Starts to write violations of the sanitizer's rules to that directory.
  void keep_findings(const std::string& directory);

  /// Returns the number of inputs except ticks, modulo 2^32: the actions of programs, and of users
  /// through the control socket.
  uint32_t inputs() const { return inputs_; }

  /// Is only for queries of the engine. Every change of the engine is a step of this object.
  const engine::Engine& engine() const { return engine_; }
  const engine::DeviceProfile* profile(engine::DeviceIndex device) const override {
    return &engine_.profile(device);
  }
  std::span<const uint8_t> next_frame() { return engine_.next_frame(); }
  bool has_next_event() { return engine_.has_next_event(); }

  OutputDelivery& delivery() { return delivery_; }

  /// The device's attributes, which are queried as a temporary client.
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
  /// Returns the client's device and process, for a finding.
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
  uint32_t facts_client_ = 0xffff'ffff;  // ids are used once, and those of sessions count up
                                         // 1: see journal::kFirstOwnClient
  ProcessNumbers process_numbers_;
  OutputDelivery delivery_;
  engine::Engine engine_;
  engine::Outputs outputs_;  // after the engine, whose frames it holds: destroyed first
};

}  // namespace rocemu::daemon
