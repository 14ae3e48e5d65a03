#include "emulator/daemon/control/hang_report.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/abi/verbs_values.h"
#include "emulator/daemon/run/recent_events.h"
#include "emulator/engine/rdmacm/command_codec.h"

namespace rocemu::daemon {
namespace {

/// The maximum number of lines of each kind, since a program may have a million objects, and a
/// report with that many lines is useless.
constexpr size_t kMostLines = 64;

class Lines {
 public:
  void add(std::string line) {
    if (lines_.size() < kMostLines) {
      lines_.push_back(std::move(line));
    } else {
      ++more_;
    }
  }
  Json json() && {
    if (more_ > 0) lines_.push_back(fmt::format("and {} more", more_));
    return Json(lines_);
  }

 private:
  std::vector<std::string> lines_;
  size_t more_ = 0;
};

/// Returns the count with its noun, such as "1 send" or "2 sends".
std::string count_of(uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string_view text_of(engine::RdmaIdState state) {
  constexpr std::string_view kStates[] = {
      "idle",           "resolving its address",   "address resolved", "resolving its route",
      "route resolved", "connecting or connected", "disconnecting",    "bound",
      "listening",      "its device is removed",   "being destroyed"};
  return kStates[static_cast<size_t>(state)];
}

std::string address_text(const abi::ucma::SockaddrStorage& address) {
  const auto socket_address = engine::cm::parse_socket_address(address.bytes);
  if (!socket_address || socket_address->family == engine::cm::Family::kNone) {
    return "";
  }
  return fmt::format("{} port {}", wire::to_string(socket_address->address), socket_address->port);
}

class HangReport {
 public:
  explicit HangReport(Worker& worker)
      : worker_(worker), fabric_(worker.engine_host().engine().snapshot()) {
    for (const ClientSession* session : worker.sessions().list()) {
      sessions_.emplace(session->id(), session);
    }
  }

  Json waits() const;
  Json objects() const;
  Json rules() const;

 private:
  std::string owner(engine::ClientId client) const {
    const auto found = sessions_.find(client);
    if (found == sessions_.end()) return fmt::format("client {}", client.value);
    return fmt::format("pid {} ({})", found->second->peer().pid, found->second->command_name());
  }
  std::string cq_text(const engine::CqSnapshot& cq) const;
  std::string id_text(const engine::RdmaIdSnapshot& id) const;

  Worker& worker_;
  engine::FabricSnapshot fabric_;
  std::map<engine::ClientId, const ClientSession*> sessions_;
};

std::string HangReport::cq_text(const engine::CqSnapshot& cq) const {
  std::string text =
      fmt::format("CQ {}, {}, with {} to be polled", cq.id.value, cq.armed ? "armed" : "not armed",
                  count_of(cq.waiting, "completion"));
  if (cq.overrun) text += ", overrun";
  return text;
}

std::string HangReport::id_text(const engine::RdmaIdSnapshot& id) const {
  std::string text = fmt::format("CM id {}, {}", id.number, text_of(id.state));
  if (id.qpn != 0) text += fmt::format(", QP {:#x}", id.qpn);
  if (const std::string source = address_text(id.source); !source.empty()) {
    text += ", from " + source;
  }
  if (const std::string destination = address_text(id.destination); !destination.empty()) {
    text += ", to " + destination;
  }
  return text;
}

Json HangReport::waits() const {
  Json waits = Json::array();
  const auto add = [&](const char* key, uint64_t inode, const std::string& what) {
    Json wait;
    wait[key] = inode;
    wait["what"] = what;
    waits.push_back(std::move(wait));
  };
  std::map<uint64_t, std::string> channels;  // completion channels, by inode
  for (const engine::DeviceSnapshot& device : fabric_.devices) {
    for (const engine::CqSnapshot& cq : device.cqs) {
      CompletionQueue* queue = worker_.sessions().find_cq(cq.client, cq.id);
      if (queue == nullptr || queue->channel().value == 0) continue;
      std::string& text = channels[queue->channel().value];
      text += (text.empty() ? "" : "; ") + cq_text(cq);
    }
  }
  for (const auto& [id, session] : sessions_) {
    for (const uint64_t inode : session->events().channel_inodes()) channels.try_emplace(inode);
    if (const uint64_t inode = session->events().async_inode(); inode != 0) {
      channels.erase(inode);
      add("inode", inode, "ibv_get_async_event");
    }
  }
  for (const auto& [inode, text] : channels) {
    add("inode", inode,
        "ibv_get_cq_event: completion channel of " + (text.empty() ? "no CQ" : text));
  }
  for (const auto& [channel, inode] : worker_.cm_sessions().inodes()) {
    std::string ids;
    for (const engine::RdmaIdSnapshot& id : fabric_.rdma_ids) {
      if (id.channel == channel) ids += (ids.empty() ? "" : "; ") + id_text(id);
    }
    add("peer", inode, "rdma_get_cm_event: event channel of " + (ids.empty() ? "no CM id" : ids));
  }
  return waits;
}

/// Returns the PSN relative to the connection's first PSN, and the PSN itself: "+3 (103)".
std::string psn_text(uint32_t psn, uint32_t first) {
  return fmt::format("+{} ({})", (psn - first) & 0xffffff, psn);
}

Json HangReport::objects() const {
  Lines lines;
  for (const engine::DeviceSnapshot& device : fabric_.devices) {
    for (const engine::QpSnapshot& qp : device.qps) {
      lines.add(fmt::format(
          "QP {:#x} of {}, {} on {}: {}, {} and {} outstanding, send CQ {}, receive "
          "CQ {}{}, to QP {:#x}, next PSN {}, oldest unacknowledged {}, expects {}",
          qp.number.value, owner(qp.client), name_of(qp.type), device.name, name_of(qp.state),
          count_of(qp.send_posted, "send"), count_of(qp.recv_posted, "receive"), qp.send_cq.value,
          qp.recv_cq.value, qp.srq.value != 0 ? fmt::format(", SRQ {}", qp.srq.value) : "",
          qp.dest_qpn, psn_text(qp.send_psn, qp.sq_psn), psn_text(qp.unacked_psn, qp.sq_psn),
          psn_text(qp.expected_psn, qp.rq_psn)));
    }
    for (const engine::SrqSnapshot& srq : device.srqs) {
      lines.add(fmt::format("SRQ {} of {}: {} of {} receives posted, limit {}", srq.id.value,
                            owner(srq.client), srq.posted, srq.max_wr, srq.limit));
    }
    for (const engine::CqSnapshot& cq : device.cqs) {
      lines.add(fmt::format("{}, of {}", cq_text(cq), owner(cq.client)));
    }
  }
  for (const engine::RdmaIdSnapshot& id : fabric_.rdma_ids) {
    const auto pid = worker_.cm_sessions().pid_of(id.channel);
    lines.add(id_text(id) + (pid ? fmt::format(", of pid {}", *pid) : ""));
  }
  return std::move(lines).json();
}

Json HangReport::rules() const {
  Lines lines;
  for (const auto& rule : worker_.engine_host().engine().rule_reports()) {
    if (rule.fired > 0)
      lines.add(fmt::format("{}: acted {}", rule.name, count_of(rule.fired, "time")));
  }
  return std::move(lines).json();
}

}  // namespace

Json hang_report(Worker& worker, engine::Instant now) {
  const HangReport report(worker);
  Json json;
  json["now_ns"] = now.time_since_epoch().count();
  json["waits"] = report.waits();
  json["objects"] = report.objects();
  const RecentEvents* recent = worker.engine_host().delivery().recent();
  json["completions"] = recent != nullptr ? Json(recent->completions()) : Json::array();
  json["frames"] = recent != nullptr ? Json(recent->frames()) : Json::array();
  json["rules"] = report.rules();
  return json;
}

}  // namespace rocemu::daemon
