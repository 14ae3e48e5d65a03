#include "emulator/journal/step_record.h"

#include <cstddef>
#include <string>
#include <utility>

#include "emulator/journal/step_values.h"
#include "emulator/scenario/scenario.h"

namespace rocemu::journal {
namespace {

using engine::ClientId;

/// The codes in the journal for the kinds of inputs
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

struct AppendInput {
  Appender& to;

  void operator()(const engine::AttachClient& input) const {
    to.put(InputKind::kAttachClient);
    to.put(input.client);
    to.put(input.device);
    to.put(input.shares_with.value_or(ClientId{}));  // 0 means none
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
  // Only the text of the rules is recorded: the replay parses it again.
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

}  // namespace rocemu::journal
