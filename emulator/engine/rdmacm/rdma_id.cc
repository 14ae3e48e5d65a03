#include "emulator/engine/rdmacm/rdma_id.h"

#include <algorithm>

#include "emulator/engine/rdmacm/addresses/port_spaces.h"

namespace rocemu::engine::cm {

Route route_of(const RdmaId& id) {
  Route route;
  route.device = id.local->device;
  route.gid_index = id.local->gid_index;
  route.remote = id.destination.address;
  route.traffic_class = id.traffic_class;
  return route;
}

uint64_t service_id(const RdmaId& id, const SocketAddress& address) {
  if (address.family == Family::kIb) return address.service | address.port;
  return service_prefix(id.port_space) | address.port;
}

void choose_qkey(RdmaId& id, uint32_t qkey) {
  using abi::ucma::PortSpace;
  constexpr uint32_t kUdpQkey = 0x01234567;  // RDMA_UDP_QKEY
  const bool has_default = id.port_space == PortSpace::kUdp || id.port_space == PortSpace::kIb;
  if (qkey != 0) {
    id.qkey = qkey;
  } else if (id.qkey == 0 && has_default) {
    id.qkey = kUdpQkey;
  }
}

abi::ucma::AhAttr ah_attr(const Route& route, const wire::IpAddress& dgid) {
  abi::ucma::AhAttr attr{};
  std::copy(dgid.bytes.begin(), dgid.bytes.end(), attr.dgid);
  attr.flow_label = route.flow_label;
  attr.sgid_index = route.gid_index;
  attr.hop_limit = route.hop_limit;
  attr.traffic_class = route.traffic_class;
  attr.is_global = 1;
  attr.port_num = 1;
  return attr;
}

}  // namespace rocemu::engine::cm
