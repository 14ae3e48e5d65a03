#include "emulator/daemon/control/state_json.h"

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "emulator/abi/send_opcodes.h"
#include "emulator/abi/verbs_values.h"

namespace rocemu::daemon {
namespace {

using Sessions = std::map<engine::ClientId, const ClientSession*>;

void add_owner(Json& object, engine::ClientId client, const Sessions& sessions) {
  object["client"] = client.value;
  const auto found = sessions.find(client);
  if (found == sessions.end()) return;
  object["pid"] = found->second->peer().pid;
  object["comm"] = found->second->command_name();
}

Json qp_json(const engine::QpSnapshot& qp, const Sessions& sessions) {
  Json object;
  object["number"] = qp.number.value;
  object["type"] = name_of(qp.type);
  object["state"] = name_of(qp.state);
  add_owner(object, qp.client, sessions);
  object["pd"] = qp.pd.value;
  object["srq"] = qp.srq.value;
  object["send_cq"] = qp.send_cq.value;
  object["recv_cq"] = qp.recv_cq.value;
  object["dest_qpn"] = qp.dest_qpn;
  object["sq_psn"] = qp.sq_psn;
  object["rq_psn"] = qp.rq_psn;
  object["send_psn"] = qp.send_psn;
  object["unacked_psn"] = qp.unacked_psn;
  object["expected_psn"] = qp.expected_psn;
  object["msn"] = qp.msn;
  object["send_posted"] = qp.send_posted;
  object["recv_posted"] = qp.recv_posted;
  return object;
}

Json cq_json(const engine::CqSnapshot& cq, const Sessions& sessions) {
  Json object;
  object["id"] = cq.id.value;
  add_owner(object, cq.client, sessions);
  object["capacity"] = cq.capacity;
  object["waiting"] = cq.waiting;
  object["armed"] = cq.armed;
  object["overrun"] = cq.overrun;
  return object;
}

Json srq_json(const engine::SrqSnapshot& srq, const Sessions& sessions) {
  Json object;
  object["id"] = srq.id.value;
  object["type"] = srq.type == abi::SrqType::kXrc ? "XRC" : "BASIC";
  add_owner(object, srq.client, sessions);
  object["pd"] = srq.pd.value;
  object["cq"] = srq.cq.value;
  object["max_wr"] = srq.max_wr;
  object["posted"] = srq.posted;
  object["limit"] = srq.limit;
  return object;
}

Json xrcd_json(const engine::XrcdSnapshot& xrcd) {
  Json object;
  object["id"] = xrcd.id.value;
  Json& clients = object["clients"] = Json::array();
  for (const engine::ClientId client : xrcd.clients) clients.push_back(client.value);
  return object;
}

Json mr_json(const engine::MrSnapshot& mr, const Sessions& sessions) {
  Json object;
  object["id"] = mr.id.value;
  add_owner(object, mr.client, sessions);
  object["pd"] = mr.pd.value;
  object["address"] = mr.address;
  object["length"] = mr.length;
  object["lkey"] = mr.lkey;
  object["rkey"] = mr.rkey;
  object["access"] = mr.access;
  object["kind"] = mr.kind == abi::RegionKind::kNull ? "NULL" : "MEMORY";
  object["windows"] = mr.windows;
  return object;
}

/// Describes a memory window. Its QP and region are included only while the window is bound.
Json mw_json(const engine::MwSnapshot& mw, const Sessions& sessions) {
  Json object;
  object["id"] = mw.id.value;
  object["type"] = mw.type == abi::MwType::k1 ? 1 : 2;
  add_owner(object, mw.client, sessions);
  object["rkey"] = mw.rkey;
  object["bound"] = mw.bound;
  if (!mw.bound) return object;
  object["mr"] = mw.region.value;
  object["address"] = mw.address;
  object["length"] = mw.length;
  object["access"] = mw.access;
  if (mw.type == abi::MwType::k2) object["qp"] = mw.qp.value;
  return object;
}

/// Adds the first 4096 objects, and the number of those that are omitted.
template <class Snapshots, class Describe>
void list(Json& object, const char* name, const Snapshots& all, Describe describe) {
  // To describe a million objects would take minutes, and would delay all programs.
  constexpr size_t kMax = 4096;
  Json array = Json::array();
  for (const auto& one : all) {
    if (array.size() == kMax) break;
    array.push_back(describe(one));
  }
  object[name] = std::move(array);
  if (all.size() > kMax) object["omitted"][name] = all.size() - kMax;
}

Json device_json(const engine::DeviceSnapshot& device, const Sessions& sessions) {
  Json object;
  object["name"] = device.name;
  object["port_state"] = name_of(device.port_state);
  object["removed"] = device.removed;
  object["profile"] = device.profile;
  object["prepared"] = device.has_been_prepared;
  object["posted"] = device.has_been_posted_to;
  Json& failed = object["failed_late"] = Json::array();
  for (const abi::SendOpcode& row : abi::kSendOpcodes) {
    if ((device.failed_late & abi::opcode_bit(row.opcode)) != 0)
      failed.push_back(std::string(abi::name_of(row.opcode)));
  }
  object["active_mtu"] = abi::mtu_bytes(device.active_mtu);
  object["gids"] = device.gids;
  object["pd_count"] = device.pds.size();
  object["ah_count"] = device.ah_count;
  list(object, "qps", device.qps, [&](const auto& qp) { return qp_json(qp, sessions); });
  list(object, "cqs", device.cqs, [&](const auto& cq) { return cq_json(cq, sessions); });
  list(object, "srqs", device.srqs, [&](const auto& srq) { return srq_json(srq, sessions); });
  list(object, "xrcds", device.xrcds, [](const auto& xrcd) { return xrcd_json(xrcd); });
  list(object, "mrs", device.mrs, [&](const auto& mr) { return mr_json(mr, sessions); });
  list(object, "mws", device.mws, [&](const auto& mw) { return mw_json(mw, sessions); });
  Json& counters = object["counters"] = Json::object();
  for (const engine::Counter counter : engine::kCounters) {
    counters[std::string(name(counter))] = device.counters.get(counter);
  }
  for (const auto& [name, value] : device.network_counters) counters[std::string(name)] = value;
  return object;
}

}  // namespace

Json state_json(const engine::FabricSnapshot& fabric,
                const std::vector<const ClientSession*>& list) {
  Sessions sessions;
  for (const ClientSession* session : list) sessions.emplace(session->id(), session);
  Json state;
  Json& clients = state["clients"] = Json::array();
  for (const ClientSession* session : list) {
    if (!session->is_attached()) continue;
    Json client;
    client["id"] = session->id().value;
    client["pid"] = session->peer().pid;
    client["comm"] = session->command_name();
    client["device"] = session->device().value < fabric.devices.size()
                           ? fabric.devices[session->device().value].name
                           : "?";
    client["doorbells"] = session->queues().doorbells_total;
    clients.push_back(std::move(client));
  }
  Json& listeners = state["fabric"]["listeners"] = Json::array();
  for (const engine::ListenerSnapshot& listener : fabric.listeners) {
    Json json;
    json["port_space"] = listener.port_space;
    json["address"] = listener.address;
    json["port"] = listener.port;
    listeners.push_back(std::move(json));
  }
  Json& devices = state["fabric"]["devices"] = Json::array();
  for (const engine::DeviceSnapshot& device : fabric.devices) {
    devices.push_back(device_json(device, sessions));
  }
  return state;
}

}  // namespace rocemu::daemon
