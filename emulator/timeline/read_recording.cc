#include "emulator/timeline/read_recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <variant>

#include "emulator/abi/control.h"
#include "emulator/abi/linux_names.h"
#include "emulator/abi/rings.h"
#include "emulator/abi/ucma.h"
#include "emulator/engine/faults/rule.h"
#include "emulator/journal/event.h"
#include "emulator/journal/journal_reader.h"
#include "emulator/journal/recording.h"
#include "emulator/journal/step.h"
#include "emulator/timeline/frame_follower.h"
#include "wire/cm/cm_print.h"
#include "wire/print.h"

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

/// A recording may have any number.
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

class Reader {
 public:
  Reader(const journal::Header& header, Timeline& timeline)
      : header_(header), timeline_(timeline), frames_(timeline) {
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
    const auto found = clients_.find(client.client.value);
    if (found == clients_.end()) return;
    found->second.process = client.name;
    found->second.pid = client.pid;
    for (const uint32_t lane : found->second.lanes) {
      timeline_.lanes[lane].process = client.name;
      timeline_.lanes[lane].pid = client.pid;
    }
  }

 private:
  struct Client {
    std::string process;
    uint32_t pid = 0;
    std::string device;
    std::vector<uint32_t> lanes;
    bool has_qp = false;
  };

  std::string device_name(engine::DeviceIndex device) const {
    return device.value < header_.fabric.devices.size() ? header_.fabric.devices[device.value].name
                                                        : fmt::format("device {}", device.value);
  }

  uint32_t add_lane(Client& client) {
    client.lanes.push_back(static_cast<uint32_t>(timeline_.lanes.size()));
    timeline_.lanes.push_back({client.process, client.pid, client.device, {}, 0});
    return client.lanes.back();
  }
  uint32_t lane_of_client(uint64_t id) {
    Client& client = clients_[static_cast<uint32_t>(id)];
    return client.lanes.empty() ? add_lane(client) : client.lanes[0];
  }
  uint32_t lane_of_qp(uint64_t client, uint64_t qpn) {
    const auto found = qps_.find(static_cast<uint32_t>(qpn));
    return found == qps_.end() ? lane_of_client(client) : found->second;
  }
  /// The first QP of a client is in the client's own lane.
  void create_qp(uint64_t id, uint32_t qpn, const std::string& type) {
    Client& client = clients_[static_cast<uint32_t>(id)];
    const uint32_t lane =
        client.has_qp || client.lanes.empty() ? add_lane(client) : client.lanes[0];
    client.has_qp = true;
    timeline_.lanes[lane].qpn = qpn;
    timeline_.lanes[lane].type = type;
    qps_[qpn] = lane;
    frames_.forget({client.device, qpn});
    frames_.set_lane({client.device, qpn}, lane);
  }
  /// The lane of the first id that came over the channel, which its other ids share.
  uint32_t lane_of_channel(uint32_t channel) {
    const auto found = ids_.lower_bound({channel, 0u});
    const bool is_known = found != ids_.end() && found->first.first == channel;
    return is_known ? found->second : lane_of_id(channel, 0);
  }
  /// The lane of an id of librdmacm: of its QP once it has one, which is found out at the end.
  uint32_t lane_of_id(uint32_t channel, uint32_t id) {
    const auto [found, is_new] = ids_.try_emplace({channel, id}, 0u);
    if (is_new) {
      found->second = static_cast<uint32_t>(timeline_.lanes.size());
      timeline_.lanes.push_back({"librdmacm", 0, fmt::format("channel {}", channel), {}, 0});
    }
    return found->second;
  }

 public:
  /// Ids of librdmacm get the lanes of their QPs, and lanes without anything go.
  void finish() {
    std::vector<uint32_t> into(timeline_.lanes.size());
    for (uint32_t i = 0; i < into.size(); ++i) into[i] = i;
    std::map<uint32_t, uint32_t> of_channel;
    for (const auto& [key, lane] : ids_) {
      if (const auto qpn = id_qpns_.find(key.second); qpn != id_qpns_.end()) {
        if (const auto qp = qps_.find(qpn->second); qp != qps_.end()) {
          into[lane] = qp->second;
          of_channel.try_emplace(key.first, qp->second);
        }
      }
    }
    for (const auto& [key, lane] : ids_) {
      if (into[lane] != lane) continue;
      into[lane] = of_channel.try_emplace(key.first, lane).first->second;
    }
    // A context that made no QP is shown with its process's QPs.
    std::map<uint32_t, uint32_t> of_pid;
    for (uint32_t i = 0; i < into.size(); ++i) {
      const Lane& lane = timeline_.lanes[i];
      if (lane.pid != 0 && lane.qpn != 0) of_pid.try_emplace(lane.pid, i);
    }
    for (uint32_t i = 0; i < into.size(); ++i) {
      const Lane& lane = timeline_.lanes[i];
      if (lane.qpn != 0 || lane.pid == 0 || into[i] != i) continue;
      if (const auto found = of_pid.find(lane.pid); found != of_pid.end()) into[i] = found->second;
    }
    for (Happening& one : timeline_.happenings) {
      one.lane = into[one.lane];
      if (one.to != kNoLane) one.to = into[one.to];
    }
    drop_channels_of_librdmacm_itself();
    std::vector<bool> used(into.size());
    for (const Happening& one : timeline_.happenings) {
      used[one.lane] = true;
      if (one.to != kNoLane) used[one.to] = true;
    }
    std::vector<Lane> lanes;
    for (uint32_t i = 0; i < into.size(); ++i) {
      if (!used[i]) continue;
      into[i] = static_cast<uint32_t>(lanes.size());
      lanes.push_back(timeline_.lanes[i]);
    }
    for (Happening& one : timeline_.happenings) {
      one.lane = into[one.lane];
      if (one.to != kNoLane) one.to = into[one.to];
    }
    timeline_.lanes = std::move(lanes);
  }

 private:
  /// librdmacm looks at addresses over channels of its own, with calls that always work.
  void drop_channels_of_librdmacm_itself() {
    std::vector<bool> tells(timeline_.lanes.size());
    for (const Happening& one : timeline_.happenings) {
      const bool is_plain = one.kind == Kind::kVerb && one.tone == Tone::kPlain &&
                            one.text != "rdma_listen" && one.text != "rdma_connect";
      if (!is_plain) tells[one.lane] = true;
      if (one.to != kNoLane) tells[one.to] = true;
    }
    std::erase_if(timeline_.happenings, [&](const Happening& one) {
      const Lane& lane = timeline_.lanes[one.lane];
      return lane.process == "librdmacm" && lane.qpn == 0 && !tells[one.lane] &&
             one.text != "rdma_listen";
    });
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
      clients_[attach->client.value].device = device_name(attach->device);
      return;
    }
    if (const auto* rules = std::get_if<engine::AddRules>(&input)) {
      for (const auto& rule : rules->rules->rules) rules_.insert_or_assign(rule.name, rule);
      return;
    }
    const Event event = journal::describe_input(step);
    if (event.what.empty()) return;
    const Field* client = event.find("client");
    if (client != nullptr && client->number >= journal::kFirstOwnClient) return;
    if (event.what == "verb") return add_verb(event);
    if (const auto* post = std::get_if<engine::PostSend>(&input)) {
      const auto wqe = copied<abi::SendWqe>(post->wqes);
      add(Kind::kPost, lane_of_qp(post->client.value, post->qp.value),
          fmt::format("post_send {} {}, {} B", wr_text(wqe.wr_id),
                      name_of(static_cast<abi::WrOpcode>(wqe.opcode)), event.find("bytes")->number))
          .details = details_of(event);
      return;
    }
    if (event.what == "post_recv" || event.what == "post_srq_recv") {
      const Field* qp = event.find("qp");
      add(Kind::kPost, lane_of_qp(client->number, qp != nullptr ? qp->number : 0),
          std::string(event.what) + " " + wr_text(event.find("wr_id")->number))
          .details = details_of(event);
      return;
    }
    if (const auto* command = std::get_if<engine::CmCommand>(&input))
      return add_cm_command(event, *command);
    if (event.what == "req_notify_cq") {
      add(Kind::kVerb, lane_of_client(client->number), "req_notify_cq").details = details_of(event);
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
      create_qp(client, static_cast<uint32_t>(qp->number), event.find("type")->text);
    }
    std::string text = verb;
    if (qp != nullptr && error == nullptr && verb == "create_qp")
      text += fmt::format(" {:#x}", qp->number);
    const Field* state = event.find("state");
    if (state != nullptr) text += " to " + state->text;
    if (verb == "reg_mr") text += fmt::format(", {} B", event.find("length")->number);
    if (verb == "create_cq") text += fmt::format(", {} entries", event.find("capacity")->number);
    Happening& one = add(
        Kind::kVerb, qp != nullptr ? lane_of_qp(client, qp->number) : lane_of_client(client), text);
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
    if (one.state == "RESET")
      frames_.restart({clients_[static_cast<uint32_t>(client)].device, qpn});
    connect_qp(event, client, qpn);
  }

  void connect_qp(const Event& event, uint64_t client, uint32_t qpn) {
    const FrameFollower::Place place{clients_[static_cast<uint32_t>(client)].device, qpn};
    if (const Field* psn = event.find("sq_psn"))
      frames_.set_send_psn(place, static_cast<uint32_t>(psn->number));
    if (const Field* psn = event.find("rq_psn"))
      frames_.set_receive_psn(place, static_cast<uint32_t>(psn->number));
    if (const Field* peer = event.find("dest_qp")) {
      const auto number = static_cast<uint32_t>(peer->number);
      // On which device it is the address vector tells; QPNs of one fabric are all different.
      for (const auto& [id, other] : clients_) {
        for (const uint32_t lane : other.lanes) {
          if (timeline_.lanes[lane].qpn == number) frames_.set_peer(place, {other.device, number});
        }
      }
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
    if (qpn != 0) id_qpns_[id] = qpn;
    if (input.command == Command::kOpenChannel || input.command == Command::kGetEvent) return;
    const Field* error = event.find("error");
    std::string text = "rdma_" + event.find("command")->text;
    if (error != nullptr) text += " fails: " + value_text(*error);
    Happening& one = add(Kind::kVerb, lane_of_id(channel, id), std::move(text));
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
    const uint32_t lane = lane_of_qp(output.client.value, cqe.qp_num);
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
    Happening& one = add(Kind::kEvent, lane_of_client(output.client.value), "CQ overrun");
    one.tone = Tone::kError;
    one.topic = "IBV_EVENT_CQ_ERR";
  }
  void read(const engine::CompletionEvent& output) {
    add(Kind::kEvent, lane_of_client(output.client.value), "completion event");
  }
  void read(const engine::AsyncEvent& output) {
    const std::string name(name_of(output.type));
    Happening& one = add(Kind::kEvent, lane_of_client(output.client.value), "event " + name);
    one.topic = "IBV_EVENT_" + name;
    const bool is_harmless = output.type == abi::EventType::kCommEst ||
                             output.type == abi::EventType::kSqDrained ||
                             output.type == abi::EventType::kPortActive ||
                             output.type == abi::EventType::kSrqLimitReached;
    one.tone = is_harmless ? Tone::kPlain : Tone::kError;
    if (engine::faults::fails_qp(output.type)) one.state = "ERR";
  }
  void read(const engine::DeviceLost& output) {
    add(Kind::kEvent, lane_of_client(output.client.value), "device lost").tone = Tone::kError;
  }
  void read(const journal::RecordedViolation& output) {
    Happening& one = add(Kind::kEvent, lane_of_client(output.client.value), "client violation");
    one.reason = output.reason;
    one.tone = Tone::kError;
  }
  void read(const journal::RecordedCmEvent& output) {
    using Type = abi::ucma::EventType;
    const Type type = output.event.event;
    const std::string name(abi::name_of(type));
    Happening& one =
        add(Kind::kEvent, lane_of_id(output.channel.value, output.event.id), "event " + name);
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
    const auto rule = rules_.find(std::string(output.rule));
    pending_.push_back({std::string(output.rule), std::string(output.subject),
                        rule != rules_.end() ? &rule->second : nullptr});
    // What is done to a frame is told with the frame.
    if (pending_.back().is_of_frame()) return;
    const Pending fault = pending_.back();
    pending_.pop_back();
    Happening& one =
        add(Kind::kFault, timeline_.happenings.empty() ? 0 : timeline_.happenings.back().lane,
            "rule " + fault.name);
    place_fault(fault, one);
    one.tone = Tone::kFault;
    one.reason = "on " + fault.subject;
  }
  void read(const journal::RecordedFrame& output) {
    if (output.leaves_through) return;  // its trace is among the outputs too
    std::vector<uint8_t> bytes(output.size);
    const size_t known = std::min(output.head.size(), bytes.size());
    if (known > 0) std::memcpy(bytes.data(), output.head.data(), known);
    const auto packet = wire::parse_frame(bytes);
    std::vector<uint8_t> kept(
        bytes.begin(),
        bytes.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(known, bytes.size())));
    if (!packet) {
      ++malformed_;
      return;
    }
    Happening& one = frames_.add(output.at, *packet, std::move(kept), output.size);
    one.flight = header_.fabric.link_latency;
    const std::string text = wire::to_string(*packet);
    std::string faults;
    for (auto it = pending_.begin(); it != pending_.end();) {
      const bool is_changed =
          it->rule != nullptr && (!it->rule->effects.rewrite.empty() || it->rule->effects.corrupt);
      if (it->subject != text && !is_changed) {
        ++it;
        continue;
      }
      const auto& effects = it->rule->effects;
      std::string what;
      if (effects.drop || effects.reject) {
        one.lost = true;
        what = effects.reject ? "rejected in the peer's place" : "dropped";
      } else if (is_changed) {
        what = effects.corrupt ? "corrupted" : "rewritten";
      } else if (effects.delay.count() != 0) {
        what = "delayed by " + duration_text(effects.delay);
      } else if (effects.duplicate != 0) {
        what = "duplicated";
      } else if (effects.reorder != 0) {
        what = "reordered";
      } else {
        what = "touched";
      }
      faults += (faults.empty() ? "" : "; ") + what + " by rule '" + it->name + "'";
      it = pending_.erase(it);
    }
    if (faults.empty()) return;
    one.tone = Tone::kFault;
    one.reason = one.reason.empty() ? faults : faults + "; " + one.reason;
    one.topic = one.topic.empty() ? "fault" : one.topic;
  }
  void read(const engine::KillProcess& output) {
    const auto* client = std::get_if<engine::ClientId>(&output.of);
    const uint32_t lane = client != nullptr
                              ? lane_of_client(client->value)
                              : lane_of_channel(std::get<engine::CmChannelId>(output.of).value);
    add(Kind::kFault, lane, "process killed").tone = Tone::kFault;
  }
  void read(const engine::GroupChange&) {}
  void read(const engine::DeviceChanged&) {}
  void read(const abi::Reply&) {}
  void read(const journal::RecordedCmReply&) {}

  struct Pending {
    std::string name, subject;
    const engine::faults::Rule* rule;
    bool is_of_frame() const {
      using engine::faults::Where;
      return rule != nullptr && (rule->where == Where::kFrame || rule->where == Where::kCm);
    }
  };

  /// In the lane of the QP that the subject names, if it does: "... RC SEND First qp=0x11 ..." or
  /// "work request 1 of QP 0x11".
  void place_fault(const Pending& fault, Happening& one) {
    size_t at = fault.subject.find("qp=0x");
    if (at == std::string::npos) at = fault.subject.find("QP 0x");
    if (at == std::string::npos) return;
    const auto qpn =
        static_cast<uint32_t>(std::strtoul(fault.subject.c_str() + at + 3, nullptr, 16));
    if (const auto found = qps_.find(qpn); found != qps_.end()) one.lane = found->second;
  }

  const journal::Header& header_;
  Timeline& timeline_;
  FrameFollower frames_;
  engine::Instant now_{};
  std::map<uint32_t, Client> clients_;
  std::map<uint32_t, uint32_t> qps_;                       // lanes, by QPN
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> ids_;  // lanes, by channel and id of librdmacm
  std::map<uint32_t, uint32_t> id_qpns_;
  std::map<std::string, engine::faults::Rule> rules_;
  std::vector<Pending> pending_;  // faults whose frame has not come yet
 public:
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
        journal.fail("a record that makes no sense");
      }
    }
    journal.require_whole();
  } catch (const journal::JournalError& error) {
    timeline.notes.push_back(std::string(error.what()) + "; shown is what comes before");
  }
  if (reader.malformed_ != 0)
    timeline.notes.push_back(fmt::format("{} malformed frames are not shown", reader.malformed_));
  reader.finish();
  return timeline;
}

}  // namespace rocemu::timeline
