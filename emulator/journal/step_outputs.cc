// Writes and reads the outputs of a step.
#include <cstddef>
#include <utility>

#include "emulator/engine/faults/rule.h"
#include "emulator/journal/marks.h"
#include "emulator/journal/step_record.h"
#include "emulator/journal/step_values.h"
#include "wire/icrc.h"

namespace rocemu::journal {
namespace {

using engine::ClientId;

/// The codes in the journal for the kinds of outputs
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

/// Reads an output. Returns false if its kind is unknown.
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

std::optional<RecordedOutput> OutputReader::next() {
  if (taker_.at_end() || taker_.failed()) return std::nullopt;
  RecordedOutput output;
  if (!take_output(taker_, output)) taker_.fail();
  if (taker_.failed()) return std::nullopt;
  return output;
}

}  // namespace rocemu::journal
