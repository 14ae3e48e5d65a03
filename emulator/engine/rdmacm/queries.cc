#include "emulator/engine/rdmacm/queries.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "emulator/engine/rdmacm/command_codec.h"

namespace rocemu::engine::cm::commands {
namespace {

constexpr uint32_t kNoIbdevIndex = ~uint32_t{0};  // librdmacm then uses the node GUID only
constexpr uint8_t kSelectExactly = 2;
constexpr uint8_t kRate100Gbps = 16;     // IBV_RATE_100_GBPS
constexpr uint8_t kPacketLifeTime = 18;  // code: Linux's for RoCE
constexpr uint8_t kReversible = 1 << 7, kOnePath = 1;

uint16_t big_endian(uint16_t value) {
  return static_cast<uint16_t>(value >> 8 | value << 8);
}
uint32_t big_endian(uint32_t value) {
  return __builtin_bswap32(value);
}
uint64_t big_endian(uint64_t value) {
  return __builtin_bswap64(value);
}
static_assert(std::endian::native == std::endian::little);

uint8_t packet_life_time(const RdmaId& id) {
  return id.ack_timeout && *id.ack_timeout > 0 ? static_cast<uint8_t>(*id.ack_timeout - 1)
                                               : kPacketLifeTime;
}

abi::ucma::UserPathRecord user_path(const RdmaId& id, const Route& route, abi::Mtu mtu) {
  abi::ucma::UserPathRecord path{};
  std::ranges::copy(id.destination.address.bytes, path.dgid);
  std::ranges::copy(id.source.address.bytes, path.sgid);
  path.pkey = big_endian(wire::kDefaultPkey);
  if (id.num_paths == 0) return path;
  path.flow_label = big_endian(route.flow_label);
  path.reversible = 1;
  path.mtu = static_cast<uint32_t>(mtu);
  path.hop_limit = route.hop_limit;
  path.traffic_class = route.traffic_class;
  path.mtu_selector = path.rate_selector = path.packet_life_time_selector = kSelectExactly;
  path.rate = kRate100Gbps;
  path.packet_life_time = packet_life_time(id);
  return path;
}

/// A path record of the subnet administrator (IBTA vol 1, 15.2.5.16).
struct SaPathRecord {
  uint64_t service_id;
  uint8_t dgid[16];
  uint8_t sgid[16];
  uint16_t dlid;
  uint16_t slid;
  uint32_t flow_label_hop_limit;  // flow label in bits 27:8
  uint8_t traffic_class;
  uint8_t reversible_paths;
  uint16_t pkey;
  uint16_t qos_class_sl;
  uint8_t mtu;  // selectors are in bits 7:6
  uint8_t rate;
  uint8_t packet_life_time;
  uint8_t preference;
  uint8_t reserved[6];
};
static_assert(sizeof(SaPathRecord) == sizeof(abi::ucma::PathData::record));

SaPathRecord sa_path(const RdmaId& id, const Route& route, abi::Mtu mtu) {
  constexpr uint8_t kExactly = kSelectExactly << 6;
  SaPathRecord path{};
  std::ranges::copy(id.destination.address.bytes, path.dgid);
  std::ranges::copy(id.source.address.bytes, path.sgid);
  path.flow_label_hop_limit = big_endian(route.flow_label << 8 | route.hop_limit);
  path.traffic_class = route.traffic_class;
  path.reversible_paths = kReversible | kOnePath;
  path.pkey = big_endian(wire::kDefaultPkey);
  path.mtu = static_cast<uint8_t>(kExactly | static_cast<uint8_t>(mtu));
  path.rate = kExactly | kRate100Gbps;
  path.packet_life_time = static_cast<uint8_t>(kExactly | packet_life_time(id));
  return path;
}

int query_address(const Environment& environment, const CmCommand& command, const RdmaId& id,
                  abi::ucma::QueryKind kind, std::vector<std::byte>& response) {
  using Response = abi::ucma::QueryAddrResponse;
  if (command.out_size < offsetof(Response, ibdev_index)) return ENOSPC;
  SocketAddress source = id.source, destination = id.destination;
  if (kind == abi::ucma::QueryKind::kGid) {
    for (SocketAddress* address : {&source, &destination}) {
      if (address->family == Family::kIb) continue;
      const uint64_t service = service_id(id, *address);
      const bool any = address->family == Family::kNone || address->is_any() ||
                       (address == &source && id.is_wildcard);
      *address = SocketAddress{.family = Family::kIb,
                               .address = any ? wire::IpAddress{} : address->address,
                               .port = static_cast<uint16_t>(service),
                               .service = service & ~uint64_t{0xffff},
                               .pkey = wire::kDefaultPkey};
    }
  }
  Response out{};
  out.source_size = static_cast<uint16_t>(source.size());
  out.destination_size = static_cast<uint16_t>(destination.size());
  emit(source, out.source.bytes);
  emit(destination, out.destination.bytes);
  if (id.local) {
    out.node_guid = big_endian(node_guid(environment.config(id.local->device)));
    out.ibdev_index = kNoIbdevIndex;
    out.port = 1;
    out.pkey = wire::kDefaultPkey;
  }
  respond(command, out, response);
  return 0;
}

int query_path(const Environment& environment, const CmCommand& command, const RdmaId& id,
               std::vector<std::byte>& response) {
  abi::ucma::QueryPathResponse out{};
  if (command.out_size < offsetof(abi::ucma::QueryPathResponse, paths)) return ENOSPC;
  out.num_paths = id.num_paths;
  if (id.num_paths > 0) {
    using namespace abi::ucma;
    out.paths[0].flags = kPathGmp | kPathPrimary | kPathBidirectional;
    const SaPathRecord record =
        sa_path(id, route_of(id), environment.config(id.local->device).active_mtu);
    std::memcpy(out.paths[0].record, &record, sizeof record);
  }
  respond(command, out, response);
  if (id.num_paths == 0) response.resize(offsetof(abi::ucma::QueryPathResponse, paths));
  return 0;
}

}  // namespace

int query_route(const IdTable& ids, const Environment& environment, const CmCommand& command,
                std::vector<std::byte>& response) {
  using Response = abi::ucma::QueryRouteResponse;
  const auto in = parse<abi::ucma::Query>(command);
  if (!in) return EINVAL;
  if (command.out_size < offsetof(Response, ibdev_index)) return ENOSPC;
  RdmaId* id;
  if (const int error = ids.find(command.channel, in->id, id)) return error;
  Response out{};
  emit(id->source, out.source.bytes);
  emit(id->destination, out.destination.bytes);
  if (id->local) {
    const DeviceConfig& device = environment.config(id->local->device);
    out.node_guid = big_endian(node_guid(device));
    out.ibdev_index = kNoIbdevIndex;
    out.port = 1;
    out.num_paths = id->num_paths;
    out.paths[0] = user_path(*id, route_of(*id), device.active_mtu);
  }
  respond(command, out, response);
  return 0;
}

int query(const IdTable& ids, const Environment& environment, const CmCommand& command,
          std::vector<std::byte>& response) {
  const auto in = parse<abi::ucma::Query>(command);
  if (!in) return EINVAL;
  RdmaId* id;
  if (const int error = ids.find(command.channel, in->id, id)) return error;
  switch (in->kind) {
    case abi::ucma::QueryKind::kAddr:
    case abi::ucma::QueryKind::kGid:
      return query_address(environment, command, *id, in->kind, response);
    case abi::ucma::QueryKind::kPath:
      return query_path(environment, command, *id, response);
  }
  return ENOSYS;
}

}  // namespace rocemu::engine::cm::commands
