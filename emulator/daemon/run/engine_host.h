// The engine with its surroundings: the clock goes in with each input, the recording has both, and
// outputs are delivered.
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

  /// From now on what is wrong by the rules of the sanitizer is written to that directory.
  void keep_findings(const std::string& directory);

  /// How many inputs there have been but ticks, modulo 2^32: what programs did, and by the control
  /// socket users.
  uint32_t inputs() const { return inputs_; }

  /// For what it says of itself. Whatever changes it is a step of this.
  const engine::Engine& engine() const { return engine_; }
  const engine::DeviceProfile* profile(engine::DeviceIndex device) const override {
    return &engine_.profile(device);
  }
  std::span<const uint8_t> next_frame() { return engine_.next_frame(); }
  bool has_next_event() { return engine_.has_next_event(); }

  OutputDelivery& delivery() { return delivery_; }

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
  void apply();
  /// Its device and process, for a finding.
  FindingLog::Owner owner_of(engine::ClientId client) const;
  void write_findings(size_t outputs_before);

  ClientMemory& memory_;
  SessionTable& sessions_;
  const Clock& clock_;
  engine::Instant arrival_time_{};
  std::optional<std::optional<engine::Instant>> deadline_;  // if asked for since then
  std::optional<engine::Instant> batch_time_;  // of the inputs of a batch, while there is one
  journal::Recording* recording_;
  std::vector<std::string> device_names_;
  size_t most_wqes_;
  std::optional<FindingLog> findings_;
  uint32_t inputs_ = 0;
  uint32_t facts_client_ = 0xffff'ffff;  // ids are used once, and those of sessions count up from
                                         // 1: see journal::kFirstOwnClient
  ProcessNumbers process_numbers_;
  OutputDelivery delivery_;
  engine::Engine engine_;
  engine::Outputs outputs_;  // behind the engine, whose frames it holds: goes first
};

}  // namespace rocemu::daemon
