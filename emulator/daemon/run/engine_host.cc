#include "emulator/daemon/run/engine_host.h"

#include <cerrno>
#include <utility>
#include <variant>

#include "emulator/os/proc.h"
#include "emulator/sanitizer/nic/engine_findings.h"
#include "emulator/sanitizer/rules.h"

namespace rocemu::daemon {
namespace {

/// The number of collected outputs at which they are delivered although the batch has not ended. A
/// batch takes some microseconds, and programs wait for these outputs.
constexpr size_t kMaxBatch = 16;

/// Returns the name of the process's program; "?" if the process has ended.
std::string program_of(pid_t pid) {
  const std::string comm = proc::contents_of(proc::directory_of(pid) + "/comm");
  return comm.empty() ? "?" : comm.substr(0, comm.find('\n'));
}

std::vector<std::string> names_of(const std::vector<engine::DeviceConfig>& devices) {
  std::vector<std::string> names;
  for (const engine::DeviceConfig& device : devices) names.push_back(device.name);
  return names;
}

}  // namespace

EngineHost::EngineHost(engine::FabricConfig config, ClientMemory& memory, SessionTable& sessions,
                       CmSessionTable& cm_sessions, const Clock& clock,
                       capture::PcapWriter* capture, journal::Recording* recording)
    : memory_(memory),
      sessions_(sessions),
      clock_(clock),
      recording_(recording),
      device_names_(names_of(config.devices)),
      most_wqes_(config.ack_coalescing),
      delivery_(memory, sessions, cm_sessions, clock, capture),
      engine_(std::move(config), recording != nullptr ? recording->memory() : memory) {}

void EngineHost::end_record() {
  if (recording_ != nullptr) recording_->end();
  recording_ = nullptr;
  delivery_.end_capture();
}

void EngineHost::submit(const engine::Input& input) {
  if (!batch_time_) {
    step(input);
    return apply();
  }
  step(*batch_time_, input);
  if (outputs_.list.size() < kMaxBatch) return;
  apply();
  batch_time_ = clock_.now();
}

void EngineHost::begin_batch() {
  batch_time_ = clock_.now();
}

void EngineHost::end_batch() {
  if (!batch_time_) return;
  batch_time_.reset();
  apply();
}

abi::Reply EngineHost::command(engine::ClientId client, const abi::Request& request) {
  step(engine::Command{client, request});
  abi::Reply reply{};
  reply.error = EIO;  // the engine does not reply
  if (outputs_.reply) reply = *outputs_.reply;
  apply();
  delivery_.release_outputs();
  return reply;
}

engine::CmReply EngineHost::cm_command(const engine::CmCommand& command) {
  step(command);
  engine::CmReply reply{EIO, {}};
  if (outputs_.cm_reply) reply = std::move(*outputs_.cm_reply);
  apply();
  delivery_.release_outputs();
  return reply;
}

std::optional<engine::Instant> EngineHost::next_deadline() {
  if (!deadline_) deadline_.emplace(engine_.next_deadline());
  return *deadline_;
}

bool EngineHost::tick_if_due(engine::Instant by) {
  const std::optional<engine::Instant> deadline = next_deadline();
  if (!deadline || *deadline > by) return false;
  submit(engine::Tick{});
  return true;
}

EngineHost::DeviceFacts EngineHost::device_facts(engine::DeviceIndex device) {
  const engine::ClientId client{facts_client_--};
  abi::Request request{};
  request.magic = abi::kMagic;
  request.version = abi::kVersion;
  DeviceFacts facts;
  submit(engine::AttachClient{client, device});
  request.op = abi::Op::kQueryDevice;
  facts.device = command(client, request).body.device;
  request.op = abi::Op::kQueryPort;
  request.body.query_port.port = 1;
  facts.port = command(client, request).body.port;
  submit(engine::DetachClient{client});
  return facts;
}

void EngineHost::keep_findings(const std::string& directory) {
  findings_.emplace(directory);
  if (findings_->looks_for(sanitizer::kRemoteWriteRace)) engine_.watch_write_races();
}

void EngineHost::apply() {
  delivery_.apply(outputs_.list);
  if (!outputs_.port_captures.empty()) [[unlikely]]
    delivery_.deliver(outputs_.port_captures);
  outputs_.clear();
  delivery_.report_changed_devices();
}

void EngineHost::receive(std::span<const engine::ReceivedFrame> frames) {
  step(arrival_time_, engine::ReceivedFrames{frames});
  apply();
}

void EngineHost::step(engine::Instant now, const engine::Input& input) {
  deadline_.reset();
  const size_t outputs_before = outputs_.list.size();  // of other steps of the batch
  if (!std::holds_alternative<engine::Tick>(input)) ++inputs_;
  if (recording_ != nullptr) recording_->begin_step(now, input);
  engine_.step(now, input, outputs_);
  if (findings_) [[unlikely]]
    write_findings(outputs_before);
  if (std::holds_alternative<engine::AddRules>(input) ||
      std::holds_alternative<engine::RemoveRules>(input)) {
    sessions_.set_asked_for(engine_.asked_for());
    // If there are fault rules, the engine reads messages from the program's buffers, so that
    // changing a message before its retransmission has the effect that it has with a NIC.
    memory_.read_early(engine_.rule_reports().empty());
  }
  if (recording_ == nullptr) return;
  recording_->end_step(outputs_, outputs_before);
  if (!outputs_.choices.empty()) [[unlikely]] {
    recording_->add_choices(outputs_.choices);
    outputs_.choices.clear();
  }
  const auto* attach = std::get_if<engine::AttachClient>(&input);
  const ClientSession* session = attach != nullptr ? sessions_.find(attach->client) : nullptr;
  if (session == nullptr) return;
  recording_->name(
      {attach->client, static_cast<uint32_t>(session->peer().pid), session->command_name()});
}

FindingLog::Owner EngineHost::owner_of(engine::ClientId client) const {
  const ClientSession* const session = sessions_.find(client);
  if (session == nullptr) return {};
  return {session->peer().pid, device_names_[session->device().value]};
}

/// Writes the findings of the latest step. They are written immediately, although the outputs of a
/// batch are delivered together.
void EngineHost::write_findings(size_t outputs_before) {
  for (const sanitizer::EngineFinding& one : sanitizer::findings_in(outputs_, outputs_before))
    findings_->write(one.finding, owner_of(one.client));
  outputs_.misuses.clear();
}

void EngineHost::name_process(const engine::Owner& owner, pid_t pid) {
  const auto [program, number] = process_numbers_.name_of(pid, program_of(pid));
  if (findings_) findings_->name(pid, program, number);
  submit(engine::NameProcess{owner, program, number});
}

}  // namespace rocemu::daemon
