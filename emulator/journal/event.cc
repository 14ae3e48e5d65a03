#include "emulator/journal/event.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "emulator/abi/control.h"
#include "emulator/abi/flag_names.h"
#include "emulator/abi/ucma.h"
#include "emulator/engine/faults/rule.h"
#include "emulator/journal/describe_frame.h"

namespace rocemu::journal {
namespace {

using abi::name_of;

/// Returns the struct at the beginning of the bytes. If there are too few bytes, the rest of the
/// struct is zero.
template <class Struct>
Struct copied(Bytes bytes) {
  Struct value{};
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

uint64_t bytes_to_send(Bytes bytes) {
  const auto wqe = copied<abi::SendWqe>(bytes);
  if ((wqe.flags & abi::kSendInline) != 0) return wqe.inline_size;
  uint64_t total = 0;
  for (size_t i = 0, at = sizeof wqe; i < wqe.num_sge && at + sizeof(abi::Sge) <= bytes.size();
       ++i, at += sizeof(abi::Sge)) {
    total += copied<abi::Sge>(bytes.subspan(at)).length;
  }
  return total;
}

// ---- Verbs ----------------------------------------------------------------------------------

FieldKind kind_of(abi::BodyValue value) {
  switch (value) {
    case abi::BodyValue::kNumber:
      return FieldKind::kNumber;
    case abi::BodyValue::kQp:
      return FieldKind::kQp;
    case abi::BodyValue::kCq:
      return FieldKind::kCq;
    case abi::BodyValue::kPd:
      return FieldKind::kPd;
    case abi::BodyValue::kMr:
      return FieldKind::kMr;
    case abi::BodyValue::kSrq:
      return FieldKind::kSrq;
    case abi::BodyValue::kAh:
      return FieldKind::kAh;
    case abi::BodyValue::kXrcd:
      return FieldKind::kXrcd;
    case abi::BodyValue::kDm:
      return FieldKind::kDm;
    case abi::BodyValue::kMrKey:
      return FieldKind::kMrKey;
    case abi::BodyValue::kAddress:
      return FieldKind::kAddress;
    case abi::BodyValue::kQpType:
    case abi::BodyValue::kAccess:
    case abi::BodyValue::kReregFlags:
      return FieldKind::kText;
  }
  __builtin_unreachable();
}

void add_value(Event& event, const abi::BodyField& field, uint64_t value) {
  switch (field.kind) {
    case abi::BodyValue::kQpType:
      event.add(field.key, name_of(static_cast<abi::QpType>(value)));
      return;
    case abi::BodyValue::kAccess:
      event.add(field.key, abi::flags_text(value, abi::kAccessNames));
      return;
    case abi::BodyValue::kReregFlags:
      event.add(field.key, abi::flags_text(value, abi::kReregNames));
      return;
    default:
      event.add(field.key, kind_of(field.kind), value);
  }
}

void add_attributes(Event& event, uint32_t qp, uint32_t mask, const abi::QpAttr& attr) {
  if ((mask & abi::kAttrState) != 0) {
    event.add("state", name_of(static_cast<abi::QpState>(attr.qp_state)));
  }
  if ((mask & abi::kAttrDestQpn) != 0) event.add("dest_qp", FieldKind::kQp, attr.dest_qp_num);
  if ((mask & abi::kAttrSqPsn) != 0) event.add("sq_psn", FieldKind::kSendPsn, attr.sq_psn, qp);
  if ((mask & abi::kAttrRqPsn) != 0) event.add("rq_psn", FieldKind::kRecvPsn, attr.rq_psn, qp);
  if ((mask & abi::kAttrPathMtu) != 0) {
    event.add("path_mtu", abi::mtu_bytes(static_cast<abi::Mtu>(attr.path_mtu)));
  }
  if ((mask & abi::kAttrTimeout) != 0) event.add("timeout", attr.timeout);
  if ((mask & abi::kAttrRetryCnt) != 0) event.add("retry_cnt", attr.retry_cnt);
  if ((mask & abi::kAttrRnrRetry) != 0) event.add("rnr_retry", attr.rnr_retry);
  if ((mask & abi::kAttrMinRnrTimer) != 0) event.add("min_rnr_timer", attr.min_rnr_timer);
}

/// Adds the objects and values of a verb, which are in the request and the reply.
void add_verb(Event& event, const abi::Request& request, const abi::Reply& reply) {
  const abi::OperationInfo* info = abi::find_operation(request.op);
  if (info == nullptr) return;
  const bool refused = request.refusal != 0;
  info->for_each_field([&](const abi::BodyField& field) {
    if (refused && !field.is_object_of_request()) return;
    add_value(event, field, field.read(request.body, reply.body));
  });
  if (request.op == abi::Op::kModifyQp && !refused) {
    const auto& in = request.body.modify_qp;
    add_attributes(event, in.qpn, in.mask, in.attr);
  }
}

/// Returns the rdma_cm id on which a command acts. For commands that create an id, it is in the
/// reply.
uint64_t id_of(const engine::CmCommand& command, const RecordedCmReply& reply) {
  using abi::ucma::Command;
  switch (command.command) {
    case Command::kCreateId:
    case Command::kJoinIpMcast:
    case Command::kJoinMcast:
      return copied<abi::ucma::CreateIdResponse>(reply.response).id;
    case Command::kConnect:
      return copied<abi::ucma::Connect>(command.in).id;
    case Command::kAccept:
      return copied<abi::ucma::Accept>(command.in).id;
    case Command::kBindIp:
      return copied<abi::ucma::BindIp>(command.in).id;
    case Command::kResolveIp:
      return copied<abi::ucma::ResolveIp>(command.in).id;
    case Command::kDestroyId:
    case Command::kQueryRoute:
    case Command::kQuery:
    case Command::kInitQpAttr:
    case Command::kLeaveMcast:
    case Command::kMigrateId:
    case Command::kSetOption:
      return copied<abi::ucma::DestroyId>(command.in).id;  // after an address, as in all of these
    case Command::kResolveRoute:
    case Command::kListen:
    case Command::kReject:
    case Command::kDisconnect:
    case Command::kGetEvent:
    case Command::kGetOption:
    case Command::kNotify:
    case Command::kBind:
    case Command::kResolveAddr:
    case Command::kResolveIbService:
    case Command::kWriteCmEvent:
      return copied<uint32_t>(command.in);
    case Command::kOpenChannel:
      return 0;
  }
  return 0;
}

// ---- Inputs ---------------------------------------------------------------------------------

/// The replies among the outputs of a step. They are described together with the step's input.
struct Answers {
  abi::Reply reply{};
  RecordedCmReply cm_reply{};
};

Event& add_owner(Event& event, std::string_view what, const engine::Owner& owner) {
  event.what = what;
  if (const auto* client = std::get_if<engine::ClientId>(&owner)) {
    return event.add("client", FieldKind::kClient, client->value);
  }
  return event.add("channel", std::get<engine::CmChannelId>(owner).value);
}

struct DescribeInput {
  Event& event;
  const Answers& answers;

  Event& say(std::string_view what) const {
    event.what = what;
    return event;
  }
  Event& say(std::string_view what, engine::ClientId client) const {
    return say(what).add("client", FieldKind::kClient, client.value);
  }

  void operator()(const engine::AttachClient& input) const {
    say("attach", input.client).add("device", FieldKind::kDevice, input.device.value);
  }
  void operator()(const engine::DetachClient& input) const { say("detach", input.client); }
  void operator()(const engine::Command& input) const {
    say("verb", input.client).add("verb", name_of(input.request.op));
    if (answers.reply.error != 0) {
      event.add("error", static_cast<uint64_t>(answers.reply.error));
    }
    add_verb(event, input.request, answers.reply);
  }
  void operator()(const engine::PostSend& input) const {
    const auto wqe = copied<abi::SendWqe>(input.wqes);
    say("post_send", input.client)
        .add("qp", FieldKind::kQp, input.qp.value)
        .add("wr_id", FieldKind::kName, wqe.wr_id)
        .add("opcode", name_of(static_cast<abi::WrOpcode>(wqe.opcode)))
        .add("flags", abi::flags_text(wqe.flags, abi::kSendFlagNames))
        .add("bytes", bytes_to_send(input.wqes));
  }
  void operator()(const engine::PostRecv& input) const {
    say("post_recv", input.client)
        .add("qp", FieldKind::kQp, input.qp.value)
        .add("wr_id", FieldKind::kName, copied<abi::RecvWqe>(input.wqes).wr_id);
  }
  void operator()(const engine::PostSrqRecv& input) const {
    say("post_srq_recv", input.client)
        .add("srq", FieldKind::kSrq, input.srq.value)
        .add("wr_id", FieldKind::kName, copied<abi::RecvWqe>(input.wqes).wr_id);
  }
  void operator()(const engine::ArmCq& input) const {
    say("req_notify_cq", input.client)
        .add("cq", FieldKind::kCq, input.cq.value)
        .add("seen", input.producer)
        .add("solicited_only", input.solicited_only ? 1 : 0);
  }
  void operator()(const engine::ReceivedFrames& input) const {
    size_t bytes = 0;
    for (const engine::ReceivedFrame& frame : input.frames) bytes += frame.bytes.size();
    say("frames_from_outside").add("count", input.frames.size()).add("size", bytes);
  }
  void operator()(const engine::SetPort& input) const {
    say("port")
        .add("device", FieldKind::kDevice, input.device.value)
        .add("state", input.up ? "up" : "down");
  }
  void operator()(const engine::RemoveDevice& input) const {
    say("device_removed").add("device", FieldKind::kDevice, input.device.value);
  }
  void operator()(const engine::AddRules& input) const {
    for (const engine::faults::Rule& rule : input.rules->rules) {
      if (event.what.empty()) say("add_rules");
      event.add("rule", rule.name);
    }
  }
  void operator()(const engine::RemoveRules& input) const {
    say("remove_rules");
    if (input.name) event.add("rule", *input.name);
  }
  void operator()(const engine::Pause& input) const { say(input.paused ? "pause" : "resume"); }
  void operator()(const engine::ReleaseFrames& input) const {
    say("release_frames").add("count", input.count);
  }
  void operator()(const engine::OpenCmChannel& input) const {
    say("open_event_channel").add("channel", input.channel.value);
  }
  void operator()(const engine::NameProcess& input) const {
    add_owner(event, "process", input.of)
        .add("process", input.program + "#" + std::to_string(input.number));
  }
  void operator()(const engine::CloseCmChannel& input) const {
    say("close_event_channel").add("channel", input.channel.value);
  }
  void operator()(const engine::CmCommand& input) const {
    say("cm_command").add("channel", input.channel.value).add("command", name_of(input.command));
    if (answers.cm_reply.error != 0) {
      event.add("error", static_cast<uint64_t>(answers.cm_reply.error));
    }
    event.add("id", id_of(input, answers.cm_reply));
  }
  void operator()(const engine::MemoryReady&) const { say("memory_ready"); }
  void operator()(const engine::Tick&) const {}
};

// ---- Outputs --------------------------------------------------------------------------------

struct DescribeOutput {
  Event& event;
  Frames frames;

  Event& say(std::string_view what, engine::ClientId client) const {
    event.what = what;
    return event.add("client", FieldKind::kClient, client.value);
  }

  void operator()(const engine::Completion& output) const {
    const abi::Cqe& cqe = output.cqe;
    const auto status = static_cast<abi::WcStatus>(cqe.status);
    say("completion", output.client)
        .add("cq", FieldKind::kCq, output.cq.value)
        .add("qp", FieldKind::kQp, cqe.qp_num)
        .add("wr_id", FieldKind::kName, cqe.wr_id)
        .add("status", name_of(status));
    if (status != abi::WcStatus::kSuccess) {
      event.add("vendor_err", cqe.vendor_err);
      return;
    }
    event.add("opcode", name_of(static_cast<abi::WcOpcode>(cqe.opcode))).add("bytes", cqe.byte_len);
  }
  void operator()(const engine::CqFailed& output) const {
    say("cq_overrun", output.client).add("cq", FieldKind::kCq, output.cq.value);
  }
  void operator()(const engine::CompletionEvent& output) const {
    say("completion_event", output.client).add("cq", FieldKind::kCq, output.cq.value);
  }
  void operator()(const engine::AsyncEvent& output) const {
    say("async_event", output.client)
        .add("event", name_of(output.type))
        .add("element", FieldKind::kName, output.element);
  }
  void operator()(const engine::DeviceLost& output) const { say("device_lost", output.client); }
  void operator()(const engine::KillProcess& output) const {
    add_owner(event, "killed", output.of);
  }
  void operator()(const RecordedViolation& output) const {
    say("client_violation", output.client).add("reason", output.reason);
  }
  void operator()(const RecordedFrame& output) const { describe_frame(output, frames, event); }
  void operator()(const engine::GroupChange& output) const {
    event.what = output.member ? "group_joined" : "group_left";
    event.add("device", FieldKind::kDevice, output.device.value)
        .add("group", wire::to_string(output.group));
  }
  void operator()(const RecordedCmEvent& output) const {
    event.what = "cm_event";
    event.add("channel", output.channel.value)
        .add("event", name_of(output.event.event))
        .add("id", output.event.id)
        .add("status", output.event.status);
  }
  void operator()(const RecordedRuleFired& output) const {
    event.what = "fault";
    event.add("rule", output.rule).add_detail("on", std::string(output.subject));
    if (output.frame.number != 0) describe_fault(output.frame, event);
  }
  void operator()(const engine::DeviceChanged& output) const {
    event.what = "device_changed";
    event.add("device", FieldKind::kDevice, output.device.value);
  }
  void operator()(const abi::Reply&) const {}
  void operator()(const RecordedCmReply&) const {}
};

/// Appends the text in quotes, with escape sequences if needed. Most texts have nothing to escape,
/// but names of processes can contain any character.
void append_text(const std::string& text, std::string& line) {
  const bool plain = std::ranges::all_of(
      text, [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  if (plain) {
    line += '"';
    line += text;
    line += '"';
  } else {
    line += nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  }
}

}  // namespace

const Field* Event::find(std::string_view key) const {
  const auto found = std::ranges::find(fields, key, &Field::key);
  return found == fields.end() ? nullptr : &*found;
}

Event describe_input(const Step& step) {
  Answers answers;
  OutputReader finding(step.outputs);
  while (const auto output = finding.next()) {
    if (const auto* reply = std::get_if<abi::Reply>(&*output)) answers.reply = *reply;
    if (const auto* reply = std::get_if<RecordedCmReply>(&*output)) answers.cm_reply = *reply;
  }
  Event event{step.now, "", {}};
  std::visit(DescribeInput{event, answers}, *step.input);
  return event;
}

void describe(const Step& step, Frames frames, std::vector<Event>& events) {
  Event event = describe_input(step);
  const Field* client = event.find("client");
  const bool is_own = client != nullptr && client->number >= kFirstOwnClient;
  if (!event.what.empty() && !is_own) events.push_back(std::move(event));
  OutputReader outputs(step.outputs);
  while (const auto output = outputs.next()) {
    const auto* frame = std::get_if<RecordedFrame>(&*output);
    if (frame != nullptr && frame->leaves_through) continue;  // its trace is among the outputs too
    event = {step.now, "", {}};
    std::visit(DescribeOutput{event, frames}, *output);
    if (event.what.empty()) continue;
    events.push_back(std::move(event));
  }
}

Event describe(engine::Instant now, const RecordedOutput& output) {
  Event event{now, "", {}};
  std::visit(DescribeOutput{event, Frames::kAll}, output);
  return event;
}

void describe(engine::Instant now, const ClientName& client, std::vector<Event>& events) {
  Event event{now, "client", {}};
  event.add("client", FieldKind::kClient, client.client.value)
      .add("comm", client.name)
      .add("pid", FieldKind::kName, client.pid);
  events.push_back(std::move(event));
}

void name_devices(const engine::FabricConfig& fabric, Event& event) {
  for (Field& field : event.fields) {
    if (field.kind == FieldKind::kDevice && field.number < fabric.devices.size())
      field.text = fabric.devices[field.number].name;
  }
}

void name_devices(const engine::FabricConfig& fabric, std::vector<Event>& events) {
  for (Event& event : events) name_devices(fabric, event);
}

// The lines are assembled without a JSON library, which is faster: there are a few lines for each
// recorded message.
std::string to_json(const Event& event) {
  std::string line;
  line.reserve(256);
  line += R"({"t":)";
  line += fmt::format_int(event.at.time_since_epoch().count()).c_str();
  line += R"(,"what":")";
  line += event.what;
  line += '"';
  for (const Field& field : event.fields) {
    line += R"(,")";
    line += field.key;
    line += R"(":)";
    if (field.kind == FieldKind::kText || field.kind == FieldKind::kDetail ||
        (field.kind == FieldKind::kDevice && !field.text.empty())) {
      append_text(field.text, line);
    } else {
      line += fmt::format_int(field.number).c_str();
    }
  }
  return line += '}';
}

}  // namespace rocemu::journal
