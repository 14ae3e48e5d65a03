// Binding and resolution: from socket addresses to a device of the fabric and its peer's address.
// Errors and states as in Linux's rdma_cm; where a real machine asks its routing table and ARP,
// here the fabric knows all there is, unless a device has a network beyond it: what only ARP could
// tell is then taken to be there, and RDMA_CM_EVENT_UNREACHABLE tells of it that it is not.
#include <algorithm>
#include <bit>
#include <cerrno>

#include "emulator/engine/rdmacm/rdma_cm.h"

namespace rocemu::engine::cm {
namespace {

using abi::ucma::EventType;

bool is_link_local(const SocketAddress& address) {
  return address.family == Family::kIpv6 && address.address.bytes[0] == 0xfe &&
         (address.address.bytes[1] & 0xc0) == 0x80;
}

bool is_loopback_gid(const SocketAddress& address) {
  constexpr wire::IpAddress kLoopback = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
  return address.family == Family::kIb && address.address == kLoopback;
}

bool fits(Family family, const wire::IpAddress& address) {
  return family == Family::kIb || (family == Family::kIpv4) == address.is_v4();
}

bool is_loopback_v4(const wire::IpAddress& address) {
  return address.is_v4() && address.bytes[12] == 127;
}

bool is_multicast(const wire::IpAddress& address) {
  return address.is_v4() ? (address.bytes[12] & 0xf0) == 0xe0 : address.bytes[0] == 0xff;
}

uint32_t common_prefix(const wire::IpAddress& a, const wire::IpAddress& b) {
  uint32_t bits = 0;
  for (size_t i = 0; i < a.bytes.size(); ++i, bits += 8) {
    const auto difference = static_cast<uint8_t>(a.bytes[i] ^ b.bytes[i]);
    if (difference != 0) return bits + static_cast<uint32_t>(std::countl_zero(difference));
  }
  return bits;
}

std::optional<SocketAddress> address_in(const abi::ucma::SockaddrIn6& bytes) {
  return parse_socket_address(bytes.bytes);
}

/// Of a storage of which `size` bytes are said to be used.
std::optional<SocketAddress> address_in(const abi::ucma::SockaddrStorage& bytes, size_t size) {
  std::optional<SocketAddress> address = parse_socket_address(bytes.bytes);
  return address && address->size() == size ? address : std::nullopt;
}

}  // namespace

// ---- Which device ---------------------------------------------------------------------------

std::optional<LocalAddress> RdmaCm::local_address(const wire::IpAddress& address) const {
  const std::optional<DeviceIndex> device = fabric_.objects.devices.with_address(address);
  if (!device) return std::nullopt;
  const auto& own = fabric_.objects.devices[*device].config.addresses;
  const auto index = std::find(own.begin(), own.end(), address) - own.begin();
  return LocalAddress{*device, static_cast<uint8_t>(index)};
}

/// The address most like the destination, of the first device if several are. An address of the
/// machine is so its own source, but 127.0.0.0/8 has 127.0.0.1 for that, as in Linux's local
/// routes.
std::optional<LocalAddress> RdmaCm::source_for(const SocketAddress& destination) const {
  const bool inside = fabric_.objects.devices.with_address(destination.address).has_value();
  const bool loopback = is_loopback_v4(destination.address);
  std::optional<LocalAddress> best;
  uint32_t best_score = 0;
  for (uint32_t i = 0; i < fabric_.objects.devices.count(); ++i) {
    if (fabric_.objects.devices[DeviceIndex{i}].removed) continue;
    const DeviceConfig& config = fabric_.objects.devices[DeviceIndex{i}].config;
    if (!inside && !config.outside) continue;
    const auto& own = config.addresses;
    for (size_t j = 0; j < own.size(); ++j) {
      if (own[j].is_v4() != destination.address.is_v4()) continue;
      const uint32_t score =
          loopback && is_loopback_v4(own[j]) ? 128 : common_prefix(own[j], destination.address);
      if (best && score <= best_score) continue;
      best = LocalAddress{DeviceIndex{i}, static_cast<uint8_t>(j)};
      best_score = score;
    }
  }
  return best;
}

std::optional<LocalAddress> RdmaCm::first_address(Family family) const {
  for (uint32_t i = 0; i < fabric_.objects.devices.count(); ++i) {
    if (fabric_.objects.devices[DeviceIndex{i}].removed) continue;
    const auto& own = fabric_.objects.devices[DeviceIndex{i}].config.addresses;
    for (size_t j = 0; j < own.size(); ++j) {
      if (fits(family, own[j])) return LocalAddress{DeviceIndex{i}, static_cast<uint8_t>(j)};
    }
  }
  return std::nullopt;
}

const wire::IpAddress& RdmaCm::address_of(const LocalAddress& local) const {
  return fabric_.objects.devices[local.device].config.addresses[local.gid_index];
}

void RdmaCm::give_source(RdmaId& id, const LocalAddress& local) {
  id.local = local;
  id.source.address = address_of(local);
  if (id.source.family == Family::kIb) id.source.pkey = wire::kDefaultPkey;
}

// ---- Binding --------------------------------------------------------------------------------

int RdmaCm::bind_ip(const CmCommand& command) {
  const auto in = parse<abi::ucma::BindIp>(command);
  if (!in) return EINVAL;
  const std::optional<SocketAddress> address = address_in(in->address);
  if (!address) return EINVAL;
  RdmaId* id;
  if (const int error = find(command.channel, in->id, id)) return error;
  return bind_to(*id, *address);
}

int RdmaCm::bind(const CmCommand& command) {
  const auto in = parse<abi::ucma::Bind>(command);
  if (!in) return EINVAL;
  const std::optional<SocketAddress> address = address_in(in->address, in->address_size);
  if (!address || in->reserved != 0) return EINVAL;
  RdmaId* id;
  if (const int error = find(command.channel, in->id, id)) return error;
  return bind_to(*id, *address);
}

int RdmaCm::bind_to(RdmaId& id, const SocketAddress& address) {
  if (id.state != IdState::kIdle) return EINVAL;
  if (is_link_local(address) && address.scope == 0) return EINVAL;
  std::optional<LocalAddress> local;
  if (!address.is_any()) {
    local = is_loopback_gid(address) ? first_address(Family::kIb) : local_address(address.address);
    if (!local) return EADDRNOTAVAIL;
    if (fabric_.objects.devices[local->device].removed)
      return ENODEV;  // the address stays the machine's
  }
  id.source = address;
  id.family_only = id.family_only_option.value_or(address.family == Family::kIpv4);
  id.destination = any_address(address.family);
  if (const int error = ports_.bind(id)) return error;
  id.state = IdState::kBound;
  id.local = local;
  return 0;
}

// ---- Resolution -----------------------------------------------------------------------------

int RdmaCm::resolve_ip(const CmCommand& command) {
  const auto in = parse<abi::ucma::ResolveIp>(command);
  if (!in) return EINVAL;
  const std::optional<SocketAddress> source = address_in(in->source);
  const bool has_source = in->source.bytes[0] != 0 || in->source.bytes[1] != 0;
  const std::optional<SocketAddress> destination = address_in(in->destination);
  if (!destination || (has_source && !source)) return EINVAL;
  RdmaId* id;
  if (const int error = find(command.channel, in->id, id)) return error;
  return resolve(*id, source, *destination, in->timeout_ms);
}

int RdmaCm::resolve_addr(const CmCommand& command) {
  const auto in = parse<abi::ucma::ResolveAddr>(command);
  if (!in) return EINVAL;
  const std::optional<SocketAddress> source = address_in(in->source, in->source_size);
  const std::optional<SocketAddress> destination =
      address_in(in->destination, in->destination_size);
  if (!destination || (in->source_size != 0 && !source) || in->reserved != 0) return EINVAL;
  RdmaId* id;
  if (const int error = find(command.channel, in->id, id)) return error;
  return resolve(*id, source, *destination, in->timeout_ms);
}

int RdmaCm::resolve(RdmaId& id, const std::optional<SocketAddress>& source,
                    const SocketAddress& destination, uint32_t timeout_ms) {
  if (id.state == IdState::kIdle) {
    SocketAddress from = source.value_or(any_address(destination.family));
    if (!source) from.scope = destination.scope;
    if (const int error = bind_to(id, from)) return error;
  }
  if (id.state != IdState::kBound || id.source.family != destination.family) return EINVAL;
  id.destination = destination;
  id.state = IdState::kResolvingAddress;
  complete_resolution(id, timeout_ms);
  return 0;
}

/// Is there somebody to ask for the destination?
bool RdmaCm::may_be_outside(const RdmaId& id) const {
  return id.local ? fabric_.objects.devices[id.local->device].config.outside
                  : source_for(id.destination).has_value();
}

/// Now, or after the time that ARP or neighbour discovery would have had for an address that nobody
/// answers for.
void RdmaCm::complete_resolution(RdmaId& id, uint32_t timeout_ms) {
  const bool loopback = id.destination.is_any() || is_loopback_gid(id.destination);
  const bool multicast = is_multicast(id.destination.address);  // has no owner to be asked
  if (!loopback && !multicast && !fabric_.objects.devices.with_address(id.destination.address) &&
      !may_be_outside(id)) {
    id.deadline = fabric_.step.now() + std::chrono::milliseconds(timeout_ms);
    resolutions_.insert({*id.deadline, id.number});
    return;
  }
  std::optional<LocalAddress> local = id.local;
  if (!local) {
    local = loopback || multicast ? first_address(id.source.family) : source_for(id.destination);
    if (!local) {
      id.state = IdState::kBound;
      return emit(id, EventType::kAddrError, -ENODEV);
    }
  }
  give_source(id, *local);
  if (loopback) id.destination.address = id.source.address;
  id.state = IdState::kAddressResolved;
  emit(id, EventType::kAddrResolved);
}

void RdmaCm::expire_resolutions() {
  while (!resolutions_.empty() && resolutions_.begin()->first <= fabric_.step.now()) {
    RdmaId& id = *ids_.find(resolutions_.begin()->second);
    resolutions_.erase(resolutions_.begin());
    id.deadline.reset();
    id.state = IdState::kBound;
    emit(id, EventType::kAddrError, -ETIMEDOUT);
  }
}

int RdmaCm::resolve_route(const CmCommand& command) {
  const auto in = parse<abi::ucma::ResolveRoute>(command);
  if (!in) return EINVAL;
  RdmaId* id;
  if (const int error = find_with_device(command.channel, in->id, id)) return error;
  if (in->timeout_ms == 0 || id->state != IdState::kAddressResolved) return EINVAL;
  id->state = IdState::kRouteResolved;
  id->num_paths = 1;
  emit(*id, EventType::kRouteResolved);
  return 0;
}

}  // namespace rocemu::engine::cm
