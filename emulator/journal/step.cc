#include "emulator/journal/step.h"

#include <cstddef>
#include <string>
#include <utility>

#include "emulator/journal/marks.h"
#include "emulator/scenario/scenario.h"
#include "wire/icrc.h"

namespace rocemu::journal {
namespace {

using engine::ClientId;

// ---- Inputs ---------------------------------------------------------------------------------

/// The numbers of the inputs in the file.
enum class InputKind : uint8_t {
  kAttachClient = 1,
  kDetachClient,
  kCommand,
  kPostSend,
  kPostRecv,
  kPostSrqRecv,
  kArmCq,
  kSetPort,
  kOpenCmChannel,
  kCloseCmChannel,
  kCmCommand,
  kTick,
  kRemoveDevice,
  kAddRules,
  kRemoveRules,
  kPause,
  kReleaseFrames,
  kMemoryReady,
  kReceivedFrames,
  kNameProcess,
};

void put_owner(Appender& to, const engine::Owner& owner) {
  to.put(static_cast<uint8_t>(owner.index()));
  std::visit([&](auto id) { to.put(id); }, owner);
}

engine::Owner take_owner(Taker& from) {
  const auto index = from.take<uint8_t>();
  if (index > 1) from.fail();
  if (index == 0) return from.take<ClientId>();
  return from.take<engine::CmChannelId>();
}

struct AppendInput {
  Appender& to;

  void operator()(const engine::AttachClient& input) const {
    to.put(InputKind::kAttachClient);
    to.put(input.client);
    to.put(input.device);
    to.put(input.shares_with.value_or(ClientId{}));  // 0 is nobody
  }
  void operator()(const engine::DetachClient& input) const {
    to.put(InputKind::kDetachClient);
    to.put(input.client);
  }
  void operator()(const engine::Command& input) const {
    to.put(InputKind::kCommand);
    to.put(input.client);
    to.put(input.request);
  }
  void operator()(const engine::PostSend& input) const {
    to.put(InputKind::kPostSend);
    to.put(input.client);
    to.put(input.qp);
    to.bytes(input.wqes);
  }
  void operator()(const engine::PostRecv& input) const {
    to.put(InputKind::kPostRecv);
    to.put(input.client);
    to.put(input.qp);
    to.bytes(input.wqes);
  }
  void operator()(const engine::PostSrqRecv& input) const {
    to.put(InputKind::kPostSrqRecv);
    to.put(input.client);
    to.put(input.srq);
    to.bytes(input.wqes);
  }
  void operator()(const engine::ArmCq& input) const {
    to.put(InputKind::kArmCq);
    to.put(input.client);
    to.put(input.cq);
    to.put(input.producer);
    to.put(input.solicited_only);
  }
  void operator()(const engine::ReceivedFrames& input) const {
    to.put(InputKind::kReceivedFrames);
    to.put(static_cast<uint32_t>(input.frames.size()));
    for (const engine::ReceivedFrame& frame : input.frames) {
      to.put(frame.device);
      to.put(frame.identification_known);
      to.bytes(std::as_bytes(frame.bytes));
    }
  }
  void operator()(const engine::SetPort& input) const {
    to.put(InputKind::kSetPort);
    to.put(input.device);
    to.put(input.up);
  }
  void operator()(const engine::RemoveDevice& input) const {
    to.put(InputKind::kRemoveDevice);
    to.put(input.device);
  }
  // Their text says all of them.
  void operator()(const engine::AddRules& input) const {
    to.put(InputKind::kAddRules);
    to.text(input.rules->text);
  }
  void operator()(const engine::RemoveRules& input) const {
    to.put(InputKind::kRemoveRules);
    to.put(input.name.has_value());
    to.text(input.name.value_or(""));
  }
  void operator()(const engine::Pause& input) const {
    to.put(InputKind::kPause);
    to.put(input.paused);
  }
  void operator()(const engine::ReleaseFrames& input) const {
    to.put(InputKind::kReleaseFrames);
    to.put(input.count);
  }
  void operator()(const engine::OpenCmChannel& input) const {
    to.put(InputKind::kOpenCmChannel);
    to.put(input.channel);
  }
  void operator()(const engine::NameProcess& input) const {
    to.put(InputKind::kNameProcess);
    put_owner(to, input.of);
    to.text(input.program);
    to.put(input.number);
  }
  void operator()(const engine::CloseCmChannel& input) const {
    to.put(InputKind::kCloseCmChannel);
    to.put(input.channel);
  }
  void operator()(const engine::CmCommand& input) const {
    to.put(InputKind::kCmCommand);
    to.put(input.channel);
    to.put(input.command);
    to.put(input.out_size);
    to.bytes(input.in);
  }
  void operator()(const engine::MemoryReady&) const { to.put(InputKind::kMemoryReady); }
  void operator()(const engine::Tick&) const { to.put(InputKind::kTick); }
};

/// Any value but 0 and 1 in a bool would be undefined.
bool take_bool(Taker& from) {
  const auto value = from.take<uint8_t>();
  if (value > 1) from.fail();
  return value == 1;
}

engine::ReceivedFrame take_frame(Taker& from) {
  const auto device = from.take<engine::DeviceIndex>();
  const bool identification_known = take_bool(from);
  const Bytes frame = from.bytes();
  return {
      device, {reinterpret_cast<const uint8_t*>(frame.data()), frame.size()}, identification_known};
}

void take_input(Taker& from, Step& step) {
  std::optional<engine::Input>& input = step.input;
  const auto client = [&] { return from.take<ClientId>(); };
  switch (from.take_enum(InputKind::kNameProcess)) {
    case InputKind::kAttachClient: {
      engine::AttachClient attach{client(), from.take<engine::DeviceIndex>()};
      const ClientId other = client();
      if (other.value != 0) attach.shares_with = other;
      input.emplace(attach);
      return;
    }
    case InputKind::kDetachClient:
      input.emplace(engine::DetachClient{client()});
      return;
    case InputKind::kCommand: {
      const ClientId of = client();
      step.request = from.take<abi::Request>();
      input.emplace(engine::Command{of, step.request});
      return;
    }
    case InputKind::kPostSend: {
      const ClientId of = client();
      const auto qp = from.take<engine::QpNumber>();
      input.emplace(engine::PostSend{of, qp, from.bytes()});
      return;
    }
    case InputKind::kPostRecv: {
      const ClientId of = client();
      const auto qp = from.take<engine::QpNumber>();
      input.emplace(engine::PostRecv{of, qp, from.bytes()});
      return;
    }
    case InputKind::kPostSrqRecv: {
      const ClientId of = client();
      const auto srq = from.take<engine::SrqId>();
      input.emplace(engine::PostSrqRecv{of, srq, from.bytes()});
      return;
    }
    case InputKind::kArmCq: {
      const ClientId of = client();
      const auto cq = from.take<engine::CqId>();
      const auto producer = from.take<uint32_t>();
      input.emplace(engine::ArmCq{of, cq, producer, take_bool(from)});
      return;
    }
    case InputKind::kReceivedFrames: {
      step.frames.clear();
      for (auto left = from.take<uint32_t>(); left > 0 && !from.failed(); --left) {
        step.frames.push_back(take_frame(from));
      }
      input.emplace(engine::ReceivedFrames{step.frames});
      return;
    }
    case InputKind::kSetPort: {
      const auto device = from.take<engine::DeviceIndex>();
      input.emplace(engine::SetPort{device, take_bool(from)});
      return;
    }
    case InputKind::kRemoveDevice:
      input.emplace(engine::RemoveDevice{from.take<engine::DeviceIndex>()});
      return;
    case InputKind::kOpenCmChannel:
      input.emplace(engine::OpenCmChannel{from.take<engine::CmChannelId>()});
      return;
    case InputKind::kNameProcess: {
      engine::NameProcess name{.of = take_owner(from), .program = {}, .number = 0};
      name.program = from.text();
      name.number = from.take<uint32_t>();
      input.emplace(std::move(name));
      return;
    }
    case InputKind::kCloseCmChannel:
      input.emplace(engine::CloseCmChannel{from.take<engine::CmChannelId>()});
      return;
    case InputKind::kCmCommand: {
      const auto channel = from.take<engine::CmChannelId>();
      const auto command = from.take<abi::ucma::Command>();
      const auto out_size = from.take<uint32_t>();
      input.emplace(engine::CmCommand{channel, command, from.bytes(), out_size});
      return;
    }
    case InputKind::kTick:
      input.emplace(engine::Tick{});
      return;
    case InputKind::kAddRules:
      try {
        input.emplace(engine::AddRules{scenario::parse_rules(from.text())});
      } catch (const scenario::ScenarioError&) {
        from.fail();
        input.emplace(engine::Tick{});
      }
      return;
    case InputKind::kRemoveRules: {
      const bool named = take_bool(from);
      engine::RemoveRules remove;
      const std::string_view name = from.text();
      if (named) remove.name = std::string(name);
      input.emplace(std::move(remove));
      return;
    }
    case InputKind::kPause:
      input.emplace(engine::Pause{take_bool(from)});
      return;
    case InputKind::kReleaseFrames:
      input.emplace(engine::ReleaseFrames{from.take<uint32_t>()});
      return;
    case InputKind::kMemoryReady:
      input.emplace(engine::MemoryReady{});
      return;
  }
  from.fail();  // 0
}

// ---- Outputs --------------------------------------------------------------------------------

enum class OutputKind : uint8_t {
  kCompletion = 1,
  kCqFailed,
  kCompletionEvent,
  kAsyncEvent,
  kClientViolation,
  kTransmitFrame,
  kFrameTrace,
  kCmEvent,
  kReply,
  kCmReply,
  kRuleFired,
  kDeviceChanged,
  kGroupChange,
  kDeviceLost,
  kKillProcess,
};

void append_frame(Appender& to, std::span<const uint8_t> frame) {
  to.put(static_cast<uint32_t>(frame.size()));
  const Bytes bytes = std::as_bytes(frame);
  if (bytes.size() <= kWholeFrame) return to.raw(bytes);
  to.raw(bytes.first(kFrameHeaders));
  to.raw(bytes.last(wire::kIcrcSize));
}

void take_frame(Taker& from, RecordedFrame& frame) {
  frame.size = from.take<uint32_t>();
  if (frame.size > engine::Frame::kCapacity) return from.fail();
  frame.head = from.raw(frame.size <= kWholeFrame ? frame.size : kFrameHeaders);
  if (frame.size > kWholeFrame) from.raw(wire::kIcrcSize);
}

template <class Value, class Put>
void append_optional(Appender& to, const std::optional<Value>& value, Put put) {
  to.put(static_cast<uint8_t>(value.has_value()));
  if (value) put(*value);
}

template <class Value>
void append_optional(Appender& to, const std::optional<Value>& value) {
  append_optional(to, value, [&](const Value& one) { to.put(one); });
}

template <class Value>
std::optional<Value> take_optional(Taker& from) {
  return take_bool(from) ? std::optional(from.take<Value>()) : std::nullopt;
}

struct AppendOutput {
  Appender& to;

  void operator()(const engine::Completion& output) const {
    to.put(OutputKind::kCompletion);
    to.put(output.client);
    to.put(output.cq);
    to.put(output.cqe);
  }
  void operator()(const engine::CqFailed& output) const {
    to.put(OutputKind::kCqFailed);
    to.put(output.client);
    to.put(output.cq);
  }
  void operator()(const engine::CompletionEvent& output) const {
    to.put(OutputKind::kCompletionEvent);
    to.put(output.client);
    to.put(output.cq);
    to.put(output.channel);
    to.put(output.user_handle);
  }
  void operator()(const engine::AsyncEvent& output) const {
    to.put(OutputKind::kAsyncEvent);
    to.put(output.client);
    to.put(output.type);
    to.put(output.element);
  }
  void operator()(const engine::ClientViolation& output) const {
    to.put(OutputKind::kClientViolation);
    to.put(output.client);
    to.text(output.reason);
  }
  void operator()(const engine::TransmitFrame& output) const {
    to.put(OutputKind::kTransmitFrame);
    to.put(output.device);
    append_frame(to, output.frame.bytes());
  }
  void operator()(const engine::GroupChange& output) const {
    to.put(OutputKind::kGroupChange);
    to.put(output.device);
    to.put(output.group);
    to.put(output.member);
  }
  void operator()(const engine::FrameTrace& output) const {
    to.put(OutputKind::kFrameTrace);
    to.put(output.at);
    append_marks(to, output.marks);
    append_frame(to, output.frame.bytes());
  }
  void operator()(const engine::CmEvent& output) const {
    to.put(OutputKind::kCmEvent);
    to.put(output.channel);
    to.put(*output.event);
  }
  void operator()(const engine::RuleFired& output) const {
    to.put(OutputKind::kRuleFired);
    to.text(output.rule->name);
    to.text(output.subject);
    append_optional(to, output.device);
    append_optional(to, output.qp);
    append_optional(to, output.owner, [&](const engine::Owner& owner) { put_owner(to, owner); });
    append_optional(to, output.psn);
    to.put(output.frame.number);
    to.put(output.frame.changes);
    to.put(output.frame.delay);
  }
  void operator()(const engine::DeviceChanged& output) const {
    to.put(OutputKind::kDeviceChanged);
    to.put(output.device);
  }
  void operator()(const engine::DeviceLost& output) const {
    to.put(OutputKind::kDeviceLost);
    to.put(output.client);
  }
  void operator()(const engine::KillProcess& output) const {
    to.put(OutputKind::kKillProcess);
    put_owner(to, output.of);
  }
};

/// False if the kind is none.
bool take_output(Taker& from, RecordedOutput& output) {
  const auto client = [&] { return from.take<ClientId>(); };
  const auto cq = [&] { return from.take<engine::CqId>(); };
  switch (from.take_enum(OutputKind::kKillProcess)) {
    case OutputKind::kCompletion: {
      const ClientId of = client();
      const engine::CqId id = cq();
      output.emplace<engine::Completion>(engine::Completion{of, id, from.take<abi::Cqe>()});
      return true;
    }
    case OutputKind::kCqFailed: {
      const ClientId of = client();
      output.emplace<engine::CqFailed>(engine::CqFailed{of, cq()});
      return true;
    }
    case OutputKind::kCompletionEvent: {
      const ClientId of = client();
      const engine::CqId id = cq();
      const auto channel = from.take<engine::ChannelId>();
      output.emplace<engine::CompletionEvent>(
          engine::CompletionEvent{of, id, channel, from.take<uint64_t>()});
      return true;
    }
    case OutputKind::kAsyncEvent: {
      const ClientId of = client();
      const auto type = from.take<abi::EventType>();
      output.emplace<engine::AsyncEvent>(engine::AsyncEvent{of, type, from.take<uint64_t>()});
      return true;
    }
    case OutputKind::kClientViolation: {
      const ClientId of = client();
      output.emplace<RecordedViolation>(RecordedViolation{of, from.text()});
      return true;
    }
    case OutputKind::kTransmitFrame: {
      RecordedFrame frame;
      frame.leaves_through = from.take<engine::DeviceIndex>();
      take_frame(from, frame);
      output.emplace<RecordedFrame>(frame);
      return true;
    }
    case OutputKind::kFrameTrace: {
      RecordedFrame frame;
      frame.at = from.take<engine::Instant>();
      take_marks(from, frame.marks);
      take_frame(from, frame);
      output.emplace<RecordedFrame>(frame);
      return true;
    }
    case OutputKind::kCmEvent: {
      auto& event = output.emplace<RecordedCmEvent>();
      event.channel = from.take<engine::CmChannelId>();
      event.event = from.take<abi::ucma::EventResponse>();
      return true;
    }
    case OutputKind::kGroupChange: {
      const auto device = from.take<engine::DeviceIndex>();
      const auto group = from.take<wire::IpAddress>();
      output.emplace<engine::GroupChange>(engine::GroupChange{device, group, take_bool(from)});
      return true;
    }
    case OutputKind::kReply:
      output.emplace<abi::Reply>(from.take<abi::Reply>());
      return true;
    case OutputKind::kCmReply: {
      RecordedCmReply reply{.error = from.take<int32_t>(), .response = {}};
      reply.response = from.bytes();
      output.emplace<RecordedCmReply>(reply);
      return true;
    }
    case OutputKind::kRuleFired: {
      auto& fired = output.emplace<RecordedRuleFired>();
      fired.rule = from.text();
      fired.subject = from.text();
      fired.device = take_optional<engine::DeviceIndex>(from);
      fired.qp = take_optional<engine::QpNumber>(from);
      if (take_bool(from)) fired.owner = take_owner(from);
      fired.psn = take_optional<uint32_t>(from);
      fired.frame.number = from.take<uint64_t>();
      fired.frame.changes = from.take<uint32_t>();
      fired.frame.delay = from.take<engine::Duration>();
      return true;
    }
    case OutputKind::kDeviceChanged:
      output.emplace<engine::DeviceChanged>(
          engine::DeviceChanged{from.take<engine::DeviceIndex>()});
      return true;
    case OutputKind::kDeviceLost:
      output.emplace<engine::DeviceLost>(engine::DeviceLost{client()});
      return true;
    case OutputKind::kKillProcess:
      output.emplace<engine::KillProcess>(engine::KillProcess{take_owner(from)});
      return true;
  }
  return false;
}

}  // namespace

void append(Appender& to, const ClientName& client) {
  to.put(RecordKind::kClient);
  to.put(client.client);
  to.put(client.pid);
  to.text(client.name);
}

bool parse(Bytes body, ClientName& client) {
  Taker from(body);
  if (from.take<RecordKind>() != RecordKind::kClient) return false;
  client.client = from.take<ClientId>();
  client.pid = from.take<uint32_t>();
  client.name = from.text();
  return !from.failed() && from.at_end();
}

void append_input(Appender& to, engine::Instant now, const engine::Input& input) {
  to.put(RecordKind::kStep);
  to.put(now);
  std::visit(AppendInput{to}, input);
}

void append_outputs(Appender& to, const engine::Outputs& outputs, size_t before) {
  for (const engine::Output& output : std::span(outputs.list).subspan(before)) {
    std::visit(AppendOutput{to}, output);
  }
  if (outputs.reply) {
    to.put(OutputKind::kReply);
    to.put(*outputs.reply);
  }
  if (outputs.cm_reply) {
    to.put(OutputKind::kCmReply);
    to.put(int32_t{outputs.cm_reply->error});
    to.bytes(outputs.cm_reply->response);
  }
}

bool parse(Bytes body, Step& step) {
  Taker from(body);
  if (from.take<RecordKind>() != RecordKind::kStep) return false;
  step.now = from.take<engine::Instant>();
  step.input.reset();
  take_input(from, step);
  step.calls = from.bytes();
  step.outputs = from.bytes();
  return !from.failed() && from.at_end() && step.now >= engine::Instant{};
}

std::optional<RecordedOutput> OutputReader::next() {
  if (taker_.at_end() || taker_.failed()) return std::nullopt;
  RecordedOutput output;
  if (!take_output(taker_, output)) taker_.fail();
  if (taker_.failed()) return std::nullopt;
  return output;
}

}  // namespace rocemu::journal
