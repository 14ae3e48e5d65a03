#include "emulator/timeline/reading/read_recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <variant>

#include "emulator/abi/control.h"
#include "emulator/abi/linux_names.h"
#include "emulator/abi/rings.h"
#include "emulator/abi/ucma.h"
#include "emulator/engine/faults/rule.h"
#include "emulator/engine/protocol/opcode_traits.h"
#include "emulator/journal/event.h"
#include "emulator/journal/journal_reader.h"
#include "emulator/journal/recording.h"
#include "emulator/journal/step_record.h"
#include "emulator/timeline/reading/frame_facts.h"
#include "emulator/timeline/reading/frame_follower.h"
#include "emulator/timeline/reading/recorded_lanes.h"
#include "wire/cm/cm_print.h"
#include "wire/opcode.h"

namespace rocemu::timeline {
namespace {

using journal::Event;
using journal::Field;
using journal::FieldKind;

template <class Struct>
Struct copied(journal::Bytes bytes) {
  Struct value{};
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

std::string wr_text(uint64_t wr_id) {
  return wr_id < 1'000'000 ? fmt::format("wr {}", wr_id) : fmt::format("wr {:#x}", wr_id);
}

/// Returns the text for an errno. The number may be any value, since it comes from a recording.
std::string errno_text(int number) {
  const char* const name = abi::errno_name(number);
  return name != nullptr ? name : std::to_string(number);
}

std::string value_text(const Field& field) {
  if (field.kind == FieldKind::kText || field.kind == FieldKind::kDetail) return field.text;
  if (field.key == "error") return errno_text(static_cast<int>(field.number));
  if (field.key == "path_mtu") return fmt::format("{} B", field.number);
  if (field.kind == FieldKind::kQp || field.kind == FieldKind::kMrKey ||
      field.kind == FieldKind::kAddress)
    return fmt::format("{:#x}", field.number);
  return fmt::format("{}", field.number);
}

Details details_of(const Event& event) {
  Details details;
  for (const Field& field : event.fields)
    details.emplace_back(std::string(field.key), value_text(field));
  return details;
}

/// Returns whether the answer to a request with this operation is more than an ACK.
bool is_query(wire::Operation operation) {
  const engine::KindTraits* request = engine::find_request_traits(operation);
  return request != nullptr && engine::wants_response(request->kind);
}

class Reader {
 public:
  Reader(const journal::Header& header, Timeline& timeline)
      : header_(header),
        timeline_(timeline),
        frames_(timeline),
        facts_(timeline),
        lanes_(timeline, frames_) {
    for (const engine::DeviceConfig& device : header.fabric.devices) {
      for (const wire::IpAddress& address : device.addresses)
        frames_.name_address(address, device.name);
    }
  }

  void read(const journal::Step& step) {
    now_ = step.now;
    read_input(step);
    journal::OutputReader outputs(step.outputs);
    while (const auto output = outputs.next())
      std::visit([&](const auto& one) { read(one); }, *output);
  }

  void name(const journal::ClientName& client) {
    lanes_.name(client.client.value, std::string(client.name), client.pid);
  }
  /// Completes the timeline after the last record.
  void finish() {
    facts_.add_undrawn();
    lanes_.finish();
  }
  uint64_t malformed() const { return malformed_; }

 private:
  std::string device_name(engine::DeviceIndex device) const {
    return device.value < header_.fabric.devices.size() ? header_.fabric.devices[device.value].name
                                                        : fmt::format("device {}", device.value);
  }

  Happening& add(Kind kind, uint32_t lane, std::string text) {
    Happening& happening = timeline_.happenings.emplace_back();
    happening.at = now_;
    happening.kind = kind;
    happening.lane = lane;
    happening.text = std::move(text);
    return happening;
  }

  // ---- Inputs --------------------------------------------------------------------------------

  void read_input(const journal::Step& step) {
    const engine::Input& input = *step.input;
    if (const auto* attach = std::get_if<engine::AttachClient>(&input)) {
      if (attach->client.value >= journal::kFirstOwnClient) return;
      lanes_.attach(attach->client.value, device_name(attach->device));
      return;
    }
    const Event event = journal::describe_input(step);
    if (event.what.empty()) return;
    const Field* client = event.find("client");
    if (client != nullptr && client->number >= journal::kFirstOwnClient) return;
    if (event.what == "verb") return add_verb(event);
    if (const auto* post = std::get_if<engine::PostSend>(&input)) {
      const auto wqe = copied<abi::SendWqe>(post->wqes);
      add(Kind::kPost, lanes_.of_qp(post->client.value, post->qp.value),
          fmt::format("post_send {} {}, {} B", wr_text(wqe.wr_id),
                      name_of(static_cast<abi::WrOpcode>(wqe.opcode)), event.find("bytes")->number))
          .details = details_of(event);
      return;
    }
    if (event.what == "post_recv" || event.what == "post_srq_recv") {
      const Field* qp = event.find("qp");
      add(Kind::kPost, lanes_.of_qp(client->number, qp != nullptr ? qp->number : 0),
          std::string(event.what) + " " + wr_text(event.find("wr_id")->number))
          .details = details_of(event);
      return;
    }
    if (const auto* command = std::get_if<engine::CmCommand>(&input))
      return add_cm_command(event, *command);
    if (event.what == "req_notify_cq") {
      add(Kind::kVerb, lanes_.of_client(client->number), "req_notify_cq").details =
          details_of(event);
    } else if (event.what == "port" || event.what == "device_removed") {
      const auto device = event.find("device")->number;
      const std::string name = device_name(engine::DeviceIndex{static_cast<uint32_t>(device)});
      Happening& one =
          add(Kind::kEvent, frames_.lane_of({name, 1}),
              event.what == "port" ? "port " + event.find("state")->text : "device removed");
      one.tone = Tone::kFault;
    }
  }

  void add_verb(const Event& event) {
    const uint64_t client = event.find("client")->number;
    const std::string& verb = event.find("verb")->text;
    const Field* error = event.find("error");
    const Field* qp = event.find("qp");
    if (qp == nullptr) qp = event.find("object");
    if (qp != nullptr && qp->kind != FieldKind::kQp) qp = nullptr;
    if (verb == "create_qp" && error == nullptr) {
      lanes_.create_qp(client, static_cast<uint32_t>(qp->number), event.find("type")->text);
    }
    std::string text = verb;
    if (qp != nullptr && error == nullptr && verb == "create_qp")
      text += fmt::format(" {:#x}", qp->number);
    const Field* state = event.find("state");
    if (state != nullptr) text += " to " + state->text;
    // If the provider refused the call, the event has no fields with the call's arguments, such as
    // its length.
    const Field* length = event.find("length");
    if (verb == "reg_mr" && length != nullptr) text += fmt::format(", {} B", length->number);
    const Field* capacity = event.find("capacity");
    if (verb == "create_cq" && capacity != nullptr)
      text += fmt::format(", {} entries", capacity->number);
    Happening& one =
        add(Kind::kVerb,
            qp != nullptr ? lanes_.of_qp(client, qp->number) : lanes_.of_client(client), text);
    one.details = details_of(event);
    if (error != nullptr) {
      one.tone = Tone::kError;
      one.topic = value_text(*error);
      one.text += " fails: " + one.topic;
      return;
    }
    if (state != nullptr) one.state = state->text;
    if (verb == "create_qp") one.state = "RESET";
    if (verb != "modify_qp") return;
    const auto qpn = static_cast<uint32_t>(qp->number);
    if (one.state == "RESET") frames_.restart({lanes_.device_of(client), qpn});
    connect_qp(event, client, qpn);
  }

  void connect_qp(const Event& event, uint64_t client, uint32_t qpn) {
    const FrameFollower::QpKey key{lanes_.device_of(client), qpn};
    if (const Field* psn = event.find("sq_psn"))
      frames_.set_send_psn(key, static_cast<uint32_t>(psn->number));
    if (const Field* psn = event.find("rq_psn"))
      frames_.set_receive_psn(key, static_cast<uint32_t>(psn->number));
    if (const Field* peer = event.find("dest_qp")) {
      const auto number = static_cast<uint32_t>(peer->number);
      // Finds the device by the QPN. In reality, the address vector selects the device, but all
      // QPNs of one fabric are different.
      lanes_.for_each_owner(number, [&](const std::string& device) {
        frames_.set_peer(key, {device, number});
      });
    }
  }

  void add_cm_command(const Event& event, const engine::CmCommand& input) {
    using abi::ucma::Command;
    const uint32_t channel = input.channel.value;
    const auto id = static_cast<uint32_t>(event.find("id")->number);
    uint32_t qpn = 0;
    if (input.command == Command::kConnect) {
      qpn = copied<abi::ucma::Connect>(input.in).param.qp_num;
    } else if (input.command == Command::kAccept) {
      qpn = copied<abi::ucma::Accept>(input.in).param.qp_num;
    }
    if (qpn != 0) lanes_.set_id_qp(id, qpn);
    if (input.command == Command::kOpenChannel || input.command == Command::kGetEvent) return;
    const Field* error = event.find("error");
    std::string text = "rdma_" + event.find("command")->text;
    if (error != nullptr) text += " fails: " + value_text(*error);
    Happening& one = add(Kind::kVerb, lanes_.of_id(channel, id), std::move(text));
    one.details = details_of(event);
    if (error == nullptr) return;
    one.tone = Tone::kError;
    one.topic = value_text(*error);
  }

  // ---- Outputs -------------------------------------------------------------------------------

  void read(const engine::Completion& output) {
    const abi::Cqe& cqe = output.cqe;
    const auto status = static_cast<abi::WcStatus>(cqe.status);
    const std::string name(name_of(status));
    const bool is_send = cqe.queue == abi::WorkQueue::kSend;
    std::string text =
        fmt::format("{} {} completes: {}", is_send ? "send" : "recv", wr_text(cqe.wr_id), name);
    const bool is_success = status == abi::WcStatus::kSuccess;
    if (is_success && !is_send) text += fmt::format(", {} B", cqe.byte_len);
    const uint32_t lane = lanes_.of_qp(output.client.value, cqe.qp_num);
    Happening& one = add(Kind::kCompletion, lane, std::move(text));
    one.details = details_of(journal::describe(now_, journal::RecordedOutput(output)));
    one.topic = "IBV_WC_" + name;
    one.is_request = is_send;
    if (is_success) return;
    one.tone = Tone::kError;
    if (timeline_.lanes[lane].type == "RC" || timeline_.lanes[lane].type.starts_with("XRC"))
      one.state = "ERR";
  }
  void read(const engine::CqFailed& output) {
    Happening& one = add(Kind::kEvent, lanes_.of_client(output.client.value), "CQ overrun");
    one.tone = Tone::kError;
    one.topic = "IBV_EVENT_CQ_ERR";
  }
  void read(const engine::CompletionEvent& output) {
    add(Kind::kEvent, lanes_.of_client(output.client.value), "completion event");
  }
  void read(const engine::AsyncEvent& output) {
    const std::string name(name_of(output.type));
    Happening& one = add(Kind::kEvent, lanes_.of_client(output.client.value), "event " + name);
    one.topic = "IBV_EVENT_" + name;
    const bool is_harmless = output.type == abi::EventType::kCommEst ||
                             output.type == abi::EventType::kSqDrained ||
                             output.type == abi::EventType::kPortActive ||
                             output.type == abi::EventType::kSrqLimitReached;
    one.tone = is_harmless ? Tone::kPlain : Tone::kError;
    if (engine::faults::fails_qp(output.type)) one.state = "ERR";
  }
  void read(const engine::DeviceLost& output) {
    add(Kind::kEvent, lanes_.of_client(output.client.value), "device lost").tone = Tone::kError;
  }
  void read(const journal::RecordedViolation& output) {
    Happening& one = add(Kind::kEvent, lanes_.of_client(output.client.value), "client violation");
    one.reason = output.reason;
    one.tone = Tone::kError;
  }
  void read(const journal::RecordedCmEvent& output) {
    using Type = abi::ucma::EventType;
    const Type type = output.event.event;
    const std::string name(abi::name_of(type));
    Happening& one =
        add(Kind::kEvent, lanes_.of_id(output.channel.value, output.event.id), "event " + name);
    one.topic = "RDMA_CM_EVENT_" + name;
    const auto status = static_cast<int32_t>(output.event.status);
    if (type == Type::kRejected) {
      one.reason = "reason " +
                   std::string(wire::reject_reason_name(static_cast<uint16_t>(status))) +
                   fmt::format(" ({})", status);
    } else if (status < 0) {
      one.reason = fmt::format("status {}", errno_text(-status));
    }
    if (status != 0) one.tone = Tone::kError;
  }
  void read(const journal::RecordedRuleFired& output) {
    if (output.frame.number != 0) {
      return facts_.fired({.at = now_,
                           .rule = std::string(output.rule),
                           .subject = std::string(output.subject),
                           .fault = output.frame,
                           .lane = [this, of = target_of(output)] { return lane_of(of); }});
    }
    Happening& one =
        add(Kind::kFault, lane_of(target_of(output)), "rule '" + std::string(output.rule) + "'");
    one.tone = Tone::kFault;
    one.reason = "on " + std::string(output.subject);
  }
  /// The object on which a rule acted. Parts that are unknown are missing.
  struct RuleTarget {
    std::optional<engine::DeviceIndex> device;
    std::optional<engine::QpNumber> qp;
    std::optional<engine::Owner> owner;
  };
  static RuleTarget target_of(const journal::RecordedRuleFired& output) {
    return {output.device, output.qp, output.owner};
  }
  /// Returns the lane of the QP if it and its client are known, or else that of the owner.
  uint32_t lane_of(const RuleTarget& target) {
    const auto* client = target.owner ? std::get_if<engine::ClientId>(&*target.owner) : nullptr;
    if (target.qp && client != nullptr) return lanes_.of_qp(client->value, target.qp->value);
    if (target.owner) return lane_of(*target.owner);
    return frames_.lane_of({target.device ? device_name(*target.device) : "NIC", wire::kGsiQpn});
  }
  uint32_t lane_of(const engine::Owner& owner) {
    const auto* client = std::get_if<engine::ClientId>(&owner);
    return client != nullptr ? lanes_.of_client(client->value)
                             : lanes_.of_channel(std::get<engine::CmChannelId>(owner).value);
  }
  void read(const journal::RecordedFrame& output) {
    if (output.leaves_through) return;  // its trace is among the outputs, too
    std::vector<uint8_t> bytes(output.size);
    const size_t known = std::min(output.head.size(), bytes.size());
    if (known > 0) std::memcpy(bytes.data(), output.head.data(), known);
    const auto packet = wire::parse_frame(bytes);
    bytes.resize(known);
    if (!packet) {
      return add_malformed(output, std::string(wire::name(packet.error())), std::move(bytes));
    }
    Happening& one = frames_.add(output.at, *packet, std::move(bytes), output.size);
    one.flight = header_.fabric.link_latency;
    const wire::OpcodeInfo* info = wire::find_opcode(packet->bth.opcode);
    const bool asks = info != nullptr && !info->is_response && is_query(info->operation);
    facts_.drawn(output.marks, timeline_.happenings.size() - 1, asks);
  }
  /// Adds a malformed frame to the timeline if a rule acted on it. Otherwise only counts the frame,
  /// since it is unknown which lanes it belongs to.
  void add_malformed(const journal::RecordedFrame& output, const std::string& error,
                     std::vector<uint8_t> bytes) {
    const auto lane = facts_.lane_of_rule(output.marks.number);
    if (!lane) {
      ++malformed_;
      return;
    }
    Happening& one = add(Kind::kFrame, *lane, "malformed frame (" + error + ")");
    one.at = output.at;
    one.size = output.size;
    one.bytes = std::move(bytes);
    facts_.drawn(output.marks, timeline_.happenings.size() - 1, false);
  }
  void read(const engine::KillProcess& output) {
    add(Kind::kFault, lane_of(output.of), "process killed").tone = Tone::kFault;
  }
  void read(const engine::GroupChange&) {}
  void read(const engine::DeviceChanged&) {}
  void read(const abi::Reply&) {}
  void read(const journal::RecordedCmReply&) {}

  const journal::Header& header_;
  Timeline& timeline_;
  FrameFollower frames_;
  FrameFacts facts_;
  RecordedLanes lanes_;
  engine::Instant now_{};
  uint64_t malformed_ = 0;
};

}  // namespace

Timeline read_recording(const std::string& dir) {
  Timeline timeline;
  timeline.source = dir;
  journal::JournalReader journal(dir + journal::kJournalFile);
  timeline.clock = journal.header().clock;
  timeline.wall_start_ns = journal.header().wall_start_ns;
  Reader reader(journal.header(), timeline);
  try {
    journal::Step step;
    while (const auto body = journal.next()) {
      journal::ClientName client;
      if (parse(*body, client)) {
        reader.name(client);
      } else if (parse(*body, step)) {
        reader.read(step);
      } else {
        journal.fail("an invalid record");
      }
    }
    journal.require_whole();
  } catch (const journal::JournalError& error) {
    timeline.notes.push_back(std::string(error.what()) + "; only the part before is shown");
  }
  if (reader.malformed() != 0)
    timeline.notes.push_back(fmt::format("{} malformed frames are not shown", reader.malformed()));
  reader.finish();
  return timeline;
}

}  // namespace rocemu::timeline
