#include "emulator/daemon/run/output_delivery.h"

#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <new>
#include <type_traits>
#include <variant>

#include "emulator/os/unique_fd.h"
#include "emulator/scenario/effect_words.h"

namespace rocemu::daemon {

void OutputDelivery::apply(std::vector<engine::Output>& outputs) {
  memory_.flush();  // before any program is notified of the written data
  if (holding_) {
    for (engine::Output& output : outputs) hold(output);
  } else {
    deliver_at_once(outputs);
  }
  memory_.flush_unattached();
}

void OutputDelivery::deliver_at_once(const std::vector<engine::Output>& outputs) {
  const engine::Completion* latest = nullptr;
  CompletionQueue* unpublished = nullptr;  // consecutive completions are published together
  const auto publish_latest = [&] {
    if (unpublished == nullptr) return;
    publish(*std::exchange(unpublished, nullptr), latest->client, latest->cq);
  };
  for (const engine::Output& output : outputs) {
    const auto* completion = std::get_if<engine::Completion>(&output);
    if (completion == nullptr) {
      publish_latest();  // an event must not overtake its completion
      try {
        deliver_other(output);
      } catch (const std::bad_alloc&) {  // one output is lost, like a frame, but not the others
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
    // The client will soon poll this completion and post again.
    sessions_.wake(*sessions_.find(completion->client));
  }
  publish_latest();
}

void OutputDelivery::hold(engine::Output& output) {
  if (const auto* completion = std::get_if<engine::Completion>(&output)) {
    CompletionQueue* cq = sessions_.find_cq(completion->client, completion->cq);
    if (cq == nullptr) return;
    add(*cq, *completion);
    held_cqs_.emplace_back(completion->client, completion->cq);
  } else if (std::holds_alternative<engine::FrameTrace>(output) ||
             std::holds_alternative<engine::TransmitFrame>(output) ||
             std::holds_alternative<engine::RuleFired>(output) ||
             std::holds_alternative<engine::DeviceChanged>(output)) {
    deliver_other(output);  // no client sees the output
  } else {
    held_.push_back(std::move(output));
  }
}

/// Delivers all completions before the first event, because an event may wake a client that then
/// polls for them. Begins the new round after the completions and before the events, so that a
/// client that is woken by an event is already in the new round.
bool OutputDelivery::release_outputs() {
  if (!holding_) return false;
  const bool any = !held_cqs_.empty() || !held_.empty();
  for (const auto& [client, id] : std::exchange(held_cqs_, {})) {
    if (CompletionQueue* cq = sessions_.find_cq(client, id)) publish(*cq, client, id);
  }
  sessions_.begin_round();
  for (const engine::Output& output : std::exchange(held_, {})) deliver_other(output);
  return any;
}

void OutputDelivery::deliver_other(const engine::Output& output) {
  std::visit(
      [this](const auto& other) {
        if constexpr (!std::is_same_v<decltype(other), const engine::Completion&>) {
          deliver(other);
        }
      },
      output);
}

void OutputDelivery::add(CompletionQueue& cq, const engine::Completion& completion) {
  abi::Cqe cqe = completion.cqe;
  if (recent_) [[unlikely]] {
    recent_->add(clock_.now(), completion);
  }
  cqe.payload = memory_.attach_payload(completion.client, cqe, completion.cq, cq.produced());
  cq.add(cqe);
}

void OutputDelivery::publish(CompletionQueue& cq, engine::ClientId client, engine::CqId id) {
  // On a virtual clock no thread waits for several completions.
  if (cq.publish() && !holding_) watched_cqs_.add(client, id);
}

void OutputDelivery::report_changed_devices() {
  for (const engine::DeviceIndex device : std::exchange(changed_devices_, {})) {
    if (device_changed_) device_changed_(device);
  }
}

void OutputDelivery::deliver(const engine::RuleFired& output) {
  spdlog::info("rule '{}' {}: {}{}{} at {}", output.rule->name,
               scenario::in_words(output.rule->effects), output.subject,
               output.process.empty() ? "" : ", of ", output.process,
               scenario::in_words(output.at.time_since_epoch()));
}

/// Kills a process, and waits until it has ended. Otherwise the time that the kernel takes, which
/// is random, would have an effect in lockstep.
void OutputDelivery::deliver(const engine::KillProcess& output) {
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

void OutputDelivery::deliver(const engine::DeviceChanged& output) {
  changed_devices_.push_back(output.device);
}

void OutputDelivery::deliver(const engine::CqFailed& output) {
  if (CompletionQueue* cq = sessions_.find_cq(output.client, output.cq)) cq->set_error();
}

void OutputDelivery::deliver(const engine::DeviceLost& output) {
  if (ClientSession* session = sessions_.find(output.client)) session->deliver(output);
}

void OutputDelivery::deliver(const engine::CompletionEvent& output) {
  if (ClientSession* session = sessions_.find(output.client)) session->deliver(output);
}

void OutputDelivery::deliver(const engine::AsyncEvent& output) {
  if (ClientSession* session = sessions_.find(output.client)) session->deliver(output);
}

void OutputDelivery::deliver(const engine::ClientViolation& output) {
  if (ClientSession* session = sessions_.find(output.client)) session->end(output.reason);
}

void OutputDelivery::deliver(const engine::TransmitFrame& output) {
  if (network_ != nullptr) return network_->transmit(output.device, output.frame);
  spdlog::trace("device {} sent a frame of {} bytes, which no device receives", output.device.value,
                output.frame.bytes().size());
}

void OutputDelivery::deliver(const engine::GroupChange& output) {
  if (network_ != nullptr) network_->change_group(output);
}

void OutputDelivery::deliver(const std::vector<engine::PortCapture>& frames) {
  for (const engine::PortCapture& one : frames) {
    if (one.capture >= port_captures_.size()) continue;
    capture::PcapWriter& writer = *port_captures_[one.capture];
    if (writer.is_open() && !writer.write(one.at, one.frame.bytes()))
      spdlog::error("a port's capture stops here: {}", writer.error());
  }
}

void OutputDelivery::deliver(const engine::FrameTrace& output) {
  if (recent_) recent_->add(output);
  if (capture_ == nullptr || !capture_->is_open()) return;
  if (!capture_->write(output.at, output.frame.bytes())) {
    spdlog::error("the capture stops here: {}", capture_->error());
  }
}

}  // namespace rocemu::daemon
