#include "emulator/timeline/reading/recorded_lanes.h"

#include <fmt/format.h>

#include <algorithm>

namespace rocemu::timeline {

void RecordedLanes::name(uint32_t client, const std::string& process, uint32_t pid) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return;
  found->second.process = process;
  found->second.pid = pid;
  for (const uint32_t lane : found->second.lanes) {
    timeline_.lanes[lane].process = process;
    timeline_.lanes[lane].pid = pid;
  }
}

uint32_t RecordedLanes::add_lane(Client& client) {
  client.lanes.push_back(static_cast<uint32_t>(timeline_.lanes.size()));
  timeline_.lanes.push_back({client.process, client.pid, client.device, {}, 0});
  return client.lanes.back();
}

uint32_t RecordedLanes::of_client(uint64_t id) {
  Client& client = clients_[static_cast<uint32_t>(id)];
  return client.lanes.empty() ? add_lane(client) : client.lanes[0];
}

uint32_t RecordedLanes::of_qp(uint64_t client, uint64_t qpn) {
  const auto found = qps_.find(static_cast<uint32_t>(qpn));
  return found == qps_.end() ? of_client(client) : found->second;
}

void RecordedLanes::create_qp(uint64_t id, uint32_t qpn, const std::string& type) {
  Client& client = clients_[static_cast<uint32_t>(id)];
  const uint32_t lane = client.has_qp || client.lanes.empty() ? add_lane(client) : client.lanes[0];
  client.has_qp = true;
  timeline_.lanes[lane].qpn = qpn;
  timeline_.lanes[lane].type = type;
  qps_[qpn] = lane;
  frames_.forget({client.device, qpn});
  frames_.set_lane({client.device, qpn}, lane);
}

uint32_t RecordedLanes::of_channel(uint32_t channel) {
  const auto found = ids_.lower_bound({channel, 0u});
  const bool is_known = found != ids_.end() && found->first.first == channel;
  return is_known ? found->second : of_id(channel, 0);
}

uint32_t RecordedLanes::of_id(uint32_t channel, uint32_t id) {
  const auto [found, is_new] = ids_.try_emplace({channel, id}, 0u);
  if (is_new) {
    found->second = static_cast<uint32_t>(timeline_.lanes.size());
    timeline_.lanes.push_back({"librdmacm", 0, fmt::format("channel {}", channel), {}, 0});
  }
  return found->second;
}

void RecordedLanes::finish() {
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
  // The happenings of a context that created no QP are shown in a lane of a QP of the same process.
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
  move_to(into);
  drop_channels_of_librdmacm_itself();
  drop_unused(into);
  move_to(into);
}

void RecordedLanes::move_to(const std::vector<uint32_t>& into) {
  for (Happening& one : timeline_.happenings) {
    one.lane = into[one.lane];
    if (one.to != kNoLane) one.to = into[one.to];
  }
}

void RecordedLanes::drop_unused(std::vector<uint32_t>& into) {
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
  timeline_.lanes = std::move(lanes);
}

void RecordedLanes::drop_channels_of_librdmacm_itself() {
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

}  // namespace rocemu::timeline
