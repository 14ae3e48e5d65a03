#include "emulator/daemon/run/engine_host.h"

#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <utility>
#include <variant>

#include "emulator/os/proc.h"
#include "emulator/os/unique_fd.h"
#include "emulator/sanitizer/nic.h"
#include "emulator/sanitizer/rules.h"
#include "emulator/scenario/effect_words.h"

namespace rocemu::daemon {
namespace {

/// Outputs that wait for the end of a batch, of some microseconds: others wait for them.
constexpr size_t kMaxBatch = 16;

/// The name of its program; "?" if the process has gone.
std::string program_of(pid_t pid) {
  const std::string comm = proc::contents_of(proc::directory_of(pid) + "/comm");
  return comm.empty() ? "?" : comm.substr(0, comm.find('\n'));
}

sanitizer::NicFinding finding_of(const engine::ReceiveMissing& missing) {
  return sanitizer::receive_queue_empty(
      {.qp = missing.qp.value,
       .srq = missing.srq ? std::optional(missing.srq->value) : std::nullopt,
       .from = missing.from.value,
       .is_repeated = missing.is_repeated});
}

sanitizer::NicFinding finding_of(const engine::GrhMissing& missing) {
  return sanitizer::ud_grh_ignored(missing.qp.value, missing.from.value, missing.payload);
}

sanitizer::RefusalReason reason_of(engine::AccessObstacle obstacle) {
  switch (obstacle) {
    case engine::AccessObstacle::kUnknownKey:
      return sanitizer::RefusalReason::kUnknownKey;
    case engine::AccessObstacle::kDeregistered:
      return sanitizer::RefusalReason::kDeregistered;
    case engine::AccessObstacle::kOtherPd:
      return sanitizer::RefusalReason::kOtherPd;
    case engine::AccessObstacle::kOtherQp:
      return sanitizer::RefusalReason::kOtherQp;
    case engine::AccessObstacle::kNoAccess:
      return sanitizer::RefusalReason::kNoAccess;
    case engine::AccessObstacle::kBeyond:
      return sanitizer::RefusalReason::kBeyond;
  }
  return sanitizer::RefusalReason::kUnknownKey;
}

sanitizer::NicFinding finding_of(const engine::AccessRefused& refused) {
  return sanitizer::access_refused({.qp = refused.qp.value,
                                    .from = refused.from.value,
                                    .rkey = refused.rkey,
                                    .address = refused.address,
                                    .length = refused.length,
                                    .access = refused.access,
                                    .reason = reason_of(refused.obstacle),
                                    .opened_address = refused.opened_address,
                                    .opened_length = refused.opened_length});
}

sanitizer::NicFinding finding_of(const engine::WritesUnordered& race) {
  return sanitizer::remote_write_race({.qp = race.qp.value,
                                       .other = race.other.value,
                                       .rkey = race.rkey,
                                       .address = race.address,
                                       .length = race.length});
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
      cm_sessions_(cm_sessions),
      clock_(clock),
      capture_(capture),
      recording_(recording),
      device_names_(names_of(config.devices)),
      most_wqes_(config.ack_coalescing),
      engine_(std::move(config), recording != nullptr ? recording->memory() : memory) {}

void EngineHost::end_record() {
  if (recording_ != nullptr) recording_->end();
  recording_ = nullptr;
  capture_ = nullptr;
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
  reply.error = EIO;  // of an engine that does not answer
  if (outputs_.reply) reply = *outputs_.reply;
  apply();
  release_outputs();
  return reply;
}

engine::CmReply EngineHost::cm_command(const engine::CmCommand& command) {
  step(command);
  engine::CmReply reply{EIO, {}};
  if (outputs_.cm_reply) reply = std::move(*outputs_.cm_reply);
  apply();
  release_outputs();
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
    write_findings();
  if (std::holds_alternative<engine::AddRules>(input) ||
      std::holds_alternative<engine::RemoveRules>(input)) {
    sessions_.set_asked_for(engine_.asked_for());
    // Whoever injects faults wants to see what becomes of a message that is sent again.
    memory_.use_send_slots(engine_.rule_reports().empty());
  }
  if (recording_ == nullptr) return;
  recording_->end_step(outputs_, outputs_before);
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

/// At once, though outputs of a batch are applied together.
void EngineHost::write_findings() {
  for (const engine::Misuse& misuse : outputs_.misuses)
    std::visit([this](const auto& one) { findings_->write(finding_of(one), owner_of(one.client)); },
               misuse);
  outputs_.misuses.clear();
}

void EngineHost::hold(engine::Output& output) {
  if (const auto* completion = std::get_if<engine::Completion>(&output)) {
    CompletionQueue* cq = sessions_.find_cq(completion->client, completion->cq);
    if (cq == nullptr) return;
    add(*cq, *completion);
    held_cqs_.emplace_back(completion->client, completion->cq);
  } else if (std::holds_alternative<engine::FrameTrace>(output) ||
             std::holds_alternative<engine::TransmitFrame>(output) ||
             std::holds_alternative<engine::RuleFired>(output) ||
             std::holds_alternative<engine::DeviceChanged>(output)) {
    deliver_other(output);  // no client sees it
  } else {
    held_.push_back(std::move(output));
  }
}

/// All completions before the first event, which may wake a client that polls for them. The round
/// begins in between, so a client woken by an event is already in the new round.
bool EngineHost::release_outputs() {
  if (!holding_) return false;
  const bool any = !held_cqs_.empty() || !held_.empty();
  for (const auto& [client, id] : std::exchange(held_cqs_, {})) {
    if (CompletionQueue* cq = sessions_.find_cq(client, id)) publish(*cq, client, id);
  }
  sessions_.begin_round();
  for (const engine::Output& output : std::exchange(held_, {})) deliver_other(output);
  return any;
}

void EngineHost::deliver_other(const engine::Output& output) {
  std::visit(
      [this](const auto& other) {
        if constexpr (!std::is_same_v<decltype(other), const engine::Completion&>) {
          deliver(other);
        }
      },
      output);
}

void EngineHost::add(CompletionQueue& cq, const engine::Completion& completion) {
  abi::Cqe cqe = completion.cqe;
  if (recent_) [[unlikely]] {
    recent_->add(clock_.now(), completion);
  }
  cqe.payload = memory_.attach_payload(completion.client, cqe, completion.cq, cq.produced());
  cq.add(cqe);
}

void EngineHost::publish(CompletionQueue& cq, engine::ClientId client, engine::CqId id) {
  if (cq.publish()) sessions_.wake_when_idle(client, id);
}

void EngineHost::apply() {
  memory_.flush();  // before anybody learns of what was written
  if (holding_) {
    for (engine::Output& output : outputs_.list) hold(output);
    memory_.flush_unattached();
    outputs_.clear();
    return tell_of_changed_devices();
  }
  const engine::Completion* latest = nullptr;
  CompletionQueue* unpublished = nullptr;  // completions in a row are published together
  const auto publish_latest = [&] {
    if (unpublished == nullptr) return;
    publish(*std::exchange(unpublished, nullptr), latest->client, latest->cq);
  };
  for (const engine::Output& output : outputs_.list) {
    const auto* completion = std::get_if<engine::Completion>(&output);
    if (completion == nullptr) {
      publish_latest();  // an event must not overtake its completion
      try {
        deliver_other(output);
      } catch (const std::bad_alloc&) {  // it is lost, as a frame may be, and not the others
        spdlog::error("out of memory");
      }
      continue;
    }
    CompletionQueue* cq = sessions_.find_cq(completion->client, completion->cq);
    if (cq == nullptr) continue;
    if (cq != unpublished) publish_latest();
    add(*cq, *completion);
    unpublished = cq;
    latest = completion;
    // A client that gets a completion will soon poll it and post again.
    sessions_.wake(*sessions_.find(completion->client));
  }
  publish_latest();
  memory_.flush_unattached();
  outputs_.clear();
  tell_of_changed_devices();
}

/// Not while outputs are walked: to look at a device is a step of its own.
void EngineHost::tell_of_changed_devices() {
  for (const engine::DeviceIndex device : std::exchange(changed_devices_, {})) {
    if (device_changed_) device_changed_(device);
  }
}

void EngineHost::deliver(const engine::RuleFired& output) {
  spdlog::info("rule '{}' {}: {}{}{} at {}", output.rule->name,
               scenario::in_words(output.rule->effects), output.subject,
               output.process.empty() ? "" : ", of ", output.process,
               scenario::in_words(output.at.time_since_epoch()));
}

void EngineHost::name_process(const engine::Owner& owner, pid_t pid) {
  const auto [program, number] = process_numbers_.name_of(pid, program_of(pid));
  if (findings_) findings_->name(pid, program, number);
  submit(engine::NameProcess{owner, program, number});
}

/// In lockstep nothing else goes on before it has ended: how long the kernel takes is chance.
void EngineHost::deliver(const engine::KillProcess& output) {
  pid_t pid = 0;
  if (const auto* client = std::get_if<engine::ClientId>(&output.of)) {
    if (const ClientSession* session = sessions_.find(*client)) pid = session->peer().pid;
  } else {
    pid = cm_sessions_.pid_of(std::get<engine::CmChannelId>(output.of)).value_or(0);
  }
  if (pid <= 0) return;
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!process || syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0) != 0) return;
  constexpr int kLongestDeathMs = 5000;
  pollfd ended{.fd = process.get(), .events = POLLIN, .revents = 0};
  poll(&ended, 1, kLongestDeathMs);
}

void EngineHost::deliver(const engine::DeviceChanged& output) {
  changed_devices_.push_back(output.device);
}

void EngineHost::deliver(const engine::CqFailed& output) {
  if (findings_) findings_->write(sanitizer::cq_overrun(output.cq.value), owner_of(output.client));
  if (CompletionQueue* cq = sessions_.find_cq(output.client, output.cq)) cq->set_error();
}

void EngineHost::deliver(const engine::DeviceLost& output) {
  if (ClientSession* session = sessions_.find(output.client)) session->deliver(output);
}

void EngineHost::deliver(const engine::CompletionEvent& output) {
  if (ClientSession* session = sessions_.find(output.client)) session->deliver(output);
}

void EngineHost::deliver(const engine::AsyncEvent& output) {
  if (ClientSession* session = sessions_.find(output.client)) session->deliver(output);
}

void EngineHost::deliver(const engine::ClientViolation& output) {
  if (ClientSession* session = sessions_.find(output.client)) session->end(output.reason);
}

void EngineHost::deliver(const engine::TransmitFrame& output) {
  if (network_ != nullptr) return network_->transmit(output.device, output.frame);
  spdlog::trace("device {} sent a frame of {} bytes to nobody", output.device.value,
                output.frame.bytes().size());
}

void EngineHost::deliver(const engine::GroupChange& output) {
  if (network_ != nullptr) network_->change_group(output);
}

void EngineHost::deliver(const engine::FrameTrace& output) {
  if (recent_) recent_->add(output);
  if (capture_ == nullptr || !capture_->is_open()) return;
  if (!capture_->write(output.at, output.frame.bytes())) {
    spdlog::error("the capture stops here: {}", capture_->error());
  }
}

}  // namespace rocemu::daemon
