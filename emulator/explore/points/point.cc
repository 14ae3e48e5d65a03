#include "emulator/explore/points/point.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace rocemu::explore {
namespace {

std::string ordinal(uint64_t number) {
  const uint64_t last_two = number % 100;
  const char* ending = "th";
  if (last_two < 11 || last_two > 13) {
    if (number % 10 == 1) ending = "st";
    if (number % 10 == 2) ending = "nd";
    if (number % 10 == 3) ending = "rd";
  }
  return std::to_string(number) + ending;
}

/// Returns the text as a JSON string, which is also a YAML string.
std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

struct Qp {
  std::string process, device, type;
  uint64_t order = 0;
  uint64_t peer = 0;
  uint64_t posted = 0, sent = 0, received = 0;
};

constexpr std::string_view kTypeRc = "RC", kTypeUd = "UD";

/// Finds the points in the events of a recording, one event after the other.
class Finder {
 public:
  explicit Finder(const RecordedEvents& events) : events_(events) { find_qps(); }

  std::vector<FaultPoint> find() {
    for (const RecordedEvent& event : events_.list) {
      time_ns_ = event.time_ns();
      call_site_ = event.call_site;
      const auto qp = qps_.find(event.number("qp"));
      is_connected_ = qp != qps_.end() && qp->second.type != kTypeUd;
      if (event.process.empty() && event.text("what") != "cm_message") continue;
      on_event(event);
    }
    return std::move(points_);
  }

 private:
  void find_qps() {
    std::map<uint64_t, std::string> device_of_client;
    std::map<std::string, uint64_t> orders;
    for (const RecordedEvent& event : events_.list) {
      if (event.text("what") == "attach")
        device_of_client[event.number("client")] = event.text("device");
      if (event.json.contains("error")) continue;
      if (event.text("verb") == "create_srq") with_srq_.insert(event.process);
      if (event.text("verb") == "create_qp") {
        Qp& qp = qps_[event.number("qp")];
        qp.process = event.process;
        qp.device = device_of_client[event.number("client")];
        qp.order = ++orders[qp.device];
        qp.type = event.text("type");
        ++qps_of_process_[event.process];
      }
      if (event.text("verb") == "modify_qp" && event.json.contains("dest_qp"))
        qps_[event.number("qp")].peer = event.number("dest_qp");
    }
  }

  /// Returns the keys by which a rule selects the QP. They contain the QP's number only if the
  /// process has several QPs.
  std::string at_qp(const Qp& qp) const {
    std::string place = "process: " + quoted(qp.process);
    if (qps_of_process_.at(qp.process) > 1)
      place += fmt::format(", device: {}, qp: {}", qp.device, qp.order);
    return place;
  }
  std::string at_qp_on_wire(const Qp& qp) const {
    std::string place = "process: " + quoted(qp.process);
    if (qps_of_process_.at(qp.process) > 1)
      place += fmt::format(", from: {}, qp: {}", qp.device, qp.order);
    return place;
  }

  void add(PointKind kind, const std::string& process, const std::string& name,
           const std::string& place, uint64_t nth, uint64_t position) {
    FaultPoint point;
    point.kind = kind;
    point.process = process;
    point.name = name;
    point.place = place;
    point.nth = nth;
    point.position = position;
    point.time_ns = time_ns_;
    if (kind == PointKind::kVerb) point.call_site = call_site_;
    point.is_connected = is_connected_;
    point.has_srq = with_srq_.contains(process);
    points_.push_back(std::move(point));
  }

  void on_event(const RecordedEvent& event) {
    const std::string what = event.text("what"), call = event.call();
    const std::string process = "process: " + quoted(event.process);
    if (what == "client") add(PointKind::kPhase, event.process, "open_device", "", 0, 0);
    if (!call.empty()) on_call(event, call, process);
    if (what == "post_send") on_post_send(event);
    if (what == "completion") on_completion(event);
    if (what == "cm_message") {
      const std::string mad = event.text("message");
      const uint64_t nth = ++counts_["mad " + mad + event.text("from") + event.text("to")];
      add(PointKind::kCm, "", mad, "mad: " + mad, nth, nth);
    }
    if (what == "cm_event" && event.text("event") != "GET_EVENT_FAILED")
      add_counted(PointKind::kCmEvent, event.process, event.text("event"),
                  process + ", event: " + event.text("event"));
    if (what == "async_event")
      add_counted(PointKind::kEvent, event.process, event.text("event"),
                  process + ", event: " + event.text("event"));
  }

  /// Counts a call. The calls of all contexts and event channels of a process are counted together.
  void on_call(const RecordedEvent& event, std::string call, const std::string& process) {
    if (event.is_of_list) return;  // rules apply to calls
    if (call == "rdma_connect") connecting_.insert(event.number("id"));
    // If the program has called rdma_connect() for the id, it did not call rdma_accept():
    // rdma_get_cm_event(3) in librdmacm itself sent this command, which confirms the peer's
    // acceptance.
    const bool establishes = call == "rdma_accept" && connecting_.contains(event.number("id"));
    if (establishes) call = "rdma_establish";
    if (event.text("what") == "post_send" && !event.call_name.empty()) call = event.call_name;
    const std::string place = fmt::format("{}, verb: {}", process, call);
    add_counted(PointKind::kVerb, event.process, call, place);
    // Work requests of different queues may be recorded in another order than they were posted, so
    // their calls are numbered by the recorded call sites, if these are known.
    if (event.call_number != 0 && event.text("what") != "cm_command")
      points_.back().nth_total = points_.back().position = event.call_number;
  }

  void add_counted(PointKind kind, const std::string& process, const std::string& name,
                   const std::string& place) {
    const uint64_t number = ++counts_[fmt::format("{} {}", name_of(kind), place)];
    add(kind, process, name, place, 0, number);
    points_.back().nth_total = number;
  }

  void on_post_send(const RecordedEvent& event) {
    const auto found = qps_.find(event.number("qp"));
    if (found == qps_.end() || found->second.process.empty()) return;
    Qp& qp = found->second;
    const uint64_t message = ++qp.posted;
    const std::string opcode = event.text("opcode");
    const auto place = [&](const std::string& at) {
      return fmt::format("{}, message: {}", at, message);
    };
    const std::string group = "posted " + at_qp(qp) + opcode;
    const uint64_t position = ++counts_[group];
    add(PointKind::kWorkRequest, qp.process, opcode, place(at_qp(qp)), 0, position);
    if (opcode == "LOCAL_INV" || opcode == "BIND_MW") return;
    add(PointKind::kFrame, qp.process, opcode, place(at_qp_on_wire(qp)) + ", opcode: REQUEST", 0,
        position);
    const auto other = qps_.find(qp.peer);
    if (qp.type != kTypeRc || other == qps_.end() || other->second.process.empty()) return;
    const Qp& peer = other->second;
    add(PointKind::kRequest, peer.process, opcode, place(at_qp(peer)), 0, position);
    const bool reads = opcode == "RDMA_READ";
    const std::string answer =
        reads                                                                    ? "READ_RESPONSE"
        : opcode.starts_with("ATOMIC_CMP") || opcode.starts_with("ATOMIC_FETCH") ? "ATOMIC_ACK"
                                                                                 : "ACK";
    const uint64_t nth = ++counts_["answers " + at_qp_on_wire(peer) + answer];
    add(PointKind::kResponse, peer.process, answer,
        fmt::format("{}, opcode: {}", at_qp_on_wire(peer), answer), nth, nth);
  }

  void on_completion(const RecordedEvent& event) {
    const auto found = qps_.find(event.number("qp"));
    if (found == qps_.end() || found->second.process.empty()) return;
    Qp& qp = found->second;
    const std::string opcode = event.text("opcode");
    // A failed completion has no valid opcode (ibv_poll_cq(3)), so its queue cannot be determined.
    // It is only the consequence of another event, such as a disconnection.
    if (opcode.empty()) return;
    const bool receives = opcode.starts_with("RECV");
    const uint64_t nth = receives ? ++qp.received : ++qp.sent;
    add(receives ? PointKind::kReceiveCompletion : PointKind::kSendCompletion, qp.process, opcode,
        fmt::format("{}, queue: {}", at_qp(qp), receives ? "recv" : "send"), nth,
        ++counts_["completed " + at_qp(qp) + opcode]);
  }

  const RecordedEvents& events_;
  std::map<uint64_t, Qp> qps_;
  std::map<std::string, uint64_t> qps_of_process_, counts_;
  std::set<uint64_t> connecting_;
  std::set<std::string> with_srq_;  // processes
  std::vector<FaultPoint> points_;
  int64_t time_ns_ = 0;
  std::string call_site_;
  bool is_connected_ = false;
};

/// Returns a text that is the same for all points that differ only in their position.
std::string group_of(const FaultPoint& point) {
  std::string place = point.place;
  const size_t message = place.find(", message: ");
  if (message != std::string::npos) {
    size_t end = place.find(',', message + 1);
    if (end == std::string::npos) end = place.size();
    place.erase(message, end - message);
  }
  return fmt::format("{} {} {} {} {}", name_of(point.kind), point.process, point.name, place,
                     point.call_site);
}

bool is_power_of_two(uint64_t number) {
  return number != 0 && (number & (number - 1)) == 0;
}

}  // namespace

std::string_view name_of(PointKind kind) {
  switch (kind) {
    case PointKind::kVerb:
      return "verb";
    case PointKind::kWorkRequest:
      return "work_request";
    case PointKind::kSendCompletion:
    case PointKind::kReceiveCompletion:
      return "completion";
    case PointKind::kFrame:
    case PointKind::kResponse:
      return "frame";
    case PointKind::kRequest:
      return "request";
    case PointKind::kCm:
      return "cm";
    case PointKind::kCmEvent:
      return "cm_event";
    case PointKind::kEvent:
      return "event";
    case PointKind::kPhase:
      return "process";
  }
  return "";
}

std::string FaultPoint::text() const {
  const std::string whose = process.empty() ? "the " : process + "'s ";
  const std::string which = ordinal(position) + " ";
  switch (kind) {
    case PointKind::kVerb:
      return whose + which + name;
    case PointKind::kWorkRequest:
      return whose + which + name + " work request";
    case PointKind::kSendCompletion:
    case PointKind::kReceiveCompletion:
      return whose + which + name + " completion";
    case PointKind::kFrame:
      return whose + which + name + " on the wire";
    case PointKind::kResponse:
      return whose + which + name;
    case PointKind::kRequest:
      return "the " + which + name + " that arrives at " + process;
    case PointKind::kCm:
      return whose + which + name;
    case PointKind::kCmEvent:
      return whose + which + "RDMA_CM_EVENT_" + name;
    case PointKind::kEvent:
      return whose + which + "IBV_EVENT_" + name;
    case PointKind::kPhase:
      return process + " at " + name;
  }
  return "";
}

std::vector<FaultPoint> fault_points(const RecordedEvents& events) {
  return Finder(events).find();
}

std::vector<FaultPoint> representatives(const std::vector<FaultPoint>& points) {
  struct Class {
    uint64_t size = 0, seen = 0;
    size_t latest = 0;  // position in `chosen`
  };
  std::map<std::string, Class> classes;
  for (const FaultPoint& point : points) ++classes[group_of(point)].size;
  std::vector<FaultPoint> chosen;
  for (const FaultPoint& point : points) {
    if (point.kind == PointKind::kPhase) continue;
    Class& one = classes[group_of(point)];
    const uint64_t rank = ++one.seen;
    if (is_power_of_two(rank) || rank == one.size) {
      one.latest = chosen.size();
      chosen.push_back(point);
      chosen.back().rank = rank;
    } else {
      ++chosen[one.latest].represents;
    }
  }
  return chosen;
}

}  // namespace rocemu::explore
