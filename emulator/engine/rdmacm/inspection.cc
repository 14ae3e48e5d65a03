#include "emulator/engine/rdmacm/inspection.h"

namespace rocemu::engine::cm {
namespace {

RdmaIdState state_of(const RdmaId& id) {
  switch (id.state) {
    case IdState::kIdle:
      break;
    case IdState::kBound:
      return RdmaIdState::kAddrBound;
    case IdState::kResolvingAddress:
      return RdmaIdState::kAddrQuery;
    case IdState::kAddressResolved:
      return RdmaIdState::kAddrResolved;
    case IdState::kRouteResolved:
      return RdmaIdState::kRouteResolved;
    case IdState::kListening:
      return RdmaIdState::kListen;
    case IdState::kConnecting:
      return RdmaIdState::kConnect;
    case IdState::kDisconnected:
      return RdmaIdState::kDisconnect;
    case IdState::kRemoved:
      return RdmaIdState::kDeviceRemoval;
  }
  return RdmaIdState::kIdle;
}

}  // namespace

std::vector<ListenerSnapshot> listeners_of(const IdTable& ids) {
  std::vector<ListenerSnapshot> list;
  ids.for_each([&](const RdmaId& id) {
    if (id.state != IdState::kListening) return;
    list.push_back({.port_space = static_cast<uint32_t>(id.port_space),
                    .address = wire::to_string(id.source.address),
                    .port = id.source.port});
  });
  return list;
}

std::vector<RdmaIdSnapshot> snapshots_of(const IdTable& ids) {
  std::vector<RdmaIdSnapshot> list;
  ids.for_each([&](const RdmaId& id) {
    RdmaIdSnapshot& out = list.emplace_back();
    out.number = id.number.value;
    out.channel = id.channel;
    if (id.local) out.device = id.local->device;
    out.state = state_of(id);
    out.port_space = id.port_space;
    out.qp_type = id.qp_type;
    out.qpn = id.qpn;
    emit(id.source, out.source.bytes);
    if (!id.destination.is_any()) emit(id.destination, out.destination.bytes);
  });
  return list;
}

}  // namespace rocemu::engine::cm
