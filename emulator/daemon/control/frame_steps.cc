#include "emulator/daemon/control/frame_steps.h"

#include <span>
#include <string>
#include <utility>

#include "emulator/daemon/control/control_request.h"
#include "wire/opcode.h"
#include "wire/packet.h"
#include "wire/print.h"

namespace rocemu::daemon {
namespace {

constexpr uint64_t kMaxFrames = 1000;
/// The maximum number of consecutive advances of the clock that cause no frame, for example because
/// only a timewait ends
constexpr int kMaxMoves = 100;

/// Returns the state of the QP to which a frame goes, and of its peer.
Json qps_json(const EngineHost& host, uint32_t dest_qpn) {
  const engine::FabricSnapshot fabric = host.engine().snapshot();
  uint32_t peer = 0;
  for (const engine::DeviceSnapshot& device : fabric.devices) {
    for (const engine::QpSnapshot& qp : device.qps) {
      if (qp.number.value == dest_qpn) peer = qp.dest_qpn;
    }
  }
  constexpr const char* kStates[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  Json list = Json::array();
  for (const engine::DeviceSnapshot& device : fabric.devices) {
    for (const engine::QpSnapshot& qp : device.qps) {
      if (qp.number.value != dest_qpn && (peer == 0 || qp.number.value != peer)) continue;
      Json one;
      one["device"] = device.name;
      one["qp"] = qp.number.value;
      one["state"] = kStates[static_cast<size_t>(qp.state)];
      one["sq_psn"] = qp.sq_psn;
      one["rq_psn"] = qp.rq_psn;
      one["send_psn"] = qp.send_psn;
      one["unacked_psn"] = qp.unacked_psn;
      one["expected_psn"] = qp.expected_psn;
      one["msn"] = qp.msn;
      one["send_posted"] = qp.send_posted;
      one["recv_posted"] = qp.recv_posted;
      list.push_back(std::move(one));
    }
  }
  return list;
}

/// Returns the PSN relative to the first PSN of the connection; null if that is not known. The PSN
/// of a response belongs to the requester, which receives it.
Json relative_psn(const EngineHost& host, const wire::Packet& packet) {
  const wire::OpcodeInfo* info = wire::find_opcode(packet.bth.opcode);
  if (info == nullptr || info->transport == wire::Transport::kUd) return nullptr;
  const engine::FabricSnapshot fabric = host.engine().snapshot();
  for (const engine::DeviceSnapshot& device : fabric.devices) {
    for (const engine::QpSnapshot& qp : device.qps) {
      if (qp.number.value != packet.bth.dest_qpn) continue;
      const uint32_t first = info->is_response ? qp.sq_psn : qp.rq_psn;
      return (packet.bth.psn - first).value();
    }
  }
  return nullptr;
}

}  // namespace

void FrameSteps::begin(const Json& request, ControlServer::Done done) {
  if (!host_.engine().paused()) {
    throw ControlServer::Refusal("the NIC is not paused; pause it first: rocemu pause");
  }
  const uint64_t frames = number_of(request, "frames", 1, kMaxFrames).value_or(1);
  requests_.push_back({frames, Json::array(), 0, std::move(done)});
}

bool FrameSteps::advance() {
  if (requests_.empty()) return false;
  Request& request = requests_.front();
  if (host_.engine().paused() && request.frames_left > 0) {
    if (!host_.next_frame().empty()) {
      request.frames.push_back(deliver_next_frame());
      --request.frames_left;
      request.moves = 0;
      return true;
    }
    if (move_time(request)) return true;
  }
  const Request answered = std::move(request);
  requests_.pop_front();
  answered.done(Json{{"frames", answered.frames}});
  return true;
}

bool FrameSteps::move_time(Request& request) {
  if (!host_.has_next_event() || ++request.moves > kMaxMoves) return false;
  host_.submit(engine::ReleaseFrames{0});
  host_.submit(engine::Tick{});
  return true;
}

Json FrameSteps::deliver_next_frame() {
  Json json;
  const auto packet = wire::parse_frame(host_.next_frame());
  const uint32_t dest_qpn = packet ? packet->bth.dest_qpn : 0;
  json["frame"] = packet ? wire::to_string(*packet) : std::string("malformed");
  if (packet) {
    json["psn"] = packet->bth.psn.value();
    json["relative_psn"] = relative_psn(host_, *packet);
  }
  json["before"] = qps_json(host_, dest_qpn);
  host_.submit(engine::ReleaseFrames{1});
  json["after"] = qps_json(host_, dest_qpn);
  return json;
}

}  // namespace rocemu::daemon
