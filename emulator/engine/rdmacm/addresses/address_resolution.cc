#include "emulator/engine/rdmacm/addresses/address_resolution.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <vector>

#include "emulator/engine/rdmacm/addresses/local_addresses.h"
#include "emulator/engine/rdmacm/command_codec.h"

namespace rocemu::engine::cm {
namespace {

using abi::ucma::EventType;

/// Returns whether an interface with that number can exist, which is true if a device is on the
/// interface or the fabric has no interfaces. The number 0 means any interface.
bool is_interface(const Environment& environment, uint32_t scope) {
  bool known = false;
  for (uint32_t i = 0; i < environment.device_count(); ++i) {
    const std::vector<uint32_t>& interfaces = environment.config(DeviceIndex{i}).interfaces;
    if (std::ranges::find(interfaces, scope) != interfaces.end()) return true;
    known |= !interfaces.empty();
  }
  return scope == 0 || !known;
}

}  // namespace

int AddressResolution::resolve_ip(const CmCommand& command) {
  const auto in = parse<abi::ucma::ResolveIp>(command);
  if (!in) return EINVAL;
  const std::optional<SocketAddress> source = address_in(in->source);
  const bool has_source = in->source.bytes[0] != 0 || in->source.bytes[1] != 0;
  const std::optional<SocketAddress> destination = address_in(in->destination);
  if (!destination || (has_source && !source)) return EINVAL;
  RdmaId* id;
  if (const int error = ids_.find(command.channel, in->id, id)) return error;
  return resolve(*id, source, *destination, in->timeout_ms);
}

int AddressResolution::resolve_addr(const CmCommand& command) {
  const auto in = parse<abi::ucma::ResolveAddr>(command);
  if (!in) return EINVAL;
  const std::optional<SocketAddress> source = address_in(in->source, in->source_size);
  const std::optional<SocketAddress> destination =
      address_in(in->destination, in->destination_size);
  if (!destination || (in->source_size != 0 && !source) || in->reserved != 0) return EINVAL;
  RdmaId* id;
  if (const int error = ids_.find(command.channel, in->id, id)) return error;
  return resolve(*id, source, *destination, in->timeout_ms);
}

int AddressResolution::resolve(RdmaId& id, const std::optional<SocketAddress>& source,
                               const SocketAddress& destination, uint32_t timeout_ms) {
  if (id.state == IdState::kIdle) {
    SocketAddress from = source.value_or(any_address(destination.family));
    if (!source) {
      from.scope = destination.scope;
      // Linux binds to the interface of the destination's scope, and no route starts at an
      // interface that does not exist.
      if (is_link_local(destination) && !is_interface(environment_, destination.scope)) {
        return ENETUNREACH;
      }
    }
    if (const int error = binding_.bind_to(id, from)) return error;
  }
  if (id.state != IdState::kBound || id.source.family != destination.family) return EINVAL;
  id.destination = destination;
  id.state = IdState::kResolvingAddress;
  // If no host answers, ARP or neighbor discovery repeats its requests until the timeout.
  const Duration time = is_reachable(id) ? 2 * environment_.link_latency()
                                         : Duration(std::chrono::milliseconds(timeout_ms));
  if (time == Duration(0) && is_reachable(id)) {
    finish(id);
  } else {
    id.deadline = environment_.now() + time;
    deadlines_.insert({*id.deadline, id.number});
  }
  return 0;
}

bool AddressResolution::may_be_outside(const RdmaId& id) const {
  return id.local ? environment_.config(id.local->device).outside
                  : source_for(environment_, id.destination).has_value();
}

bool AddressResolution::is_loopback(const RdmaId& id) const {
  return id.destination.is_any() || is_loopback_gid(id.destination) ||
         is_loopback_of_nobody(environment_, id.destination);
}

bool AddressResolution::is_reachable(const RdmaId& id) const {
  return is_loopback(id) || id.destination.address.is_multicast() ||
         environment_.device_with_address(id.destination.address) || may_be_outside(id);
}

void AddressResolution::finish(RdmaId& id) {
  const bool loopback = is_loopback(id);
  std::optional<LocalAddress> local = id.local;
  if (!local) {
    local = loopback || id.destination.address.is_multicast()
                ? first_address(environment_, id.source.family)
                : source_for(environment_, id.destination);
    if (!local) {
      id.state = IdState::kBound;
      return events_.emit(id, EventType::kAddrError, -ENODEV);
    }
  }
  id.local = local;
  id.is_wildcard = false;
  id.source.address = address_of(environment_, *local);
  if (id.source.family == Family::kIb) id.source.pkey = wire::kDefaultPkey;
  if (loopback) id.destination.address = id.source.address;
  id.state = IdState::kAddressResolved;
  events_.emit(id, EventType::kAddrResolved);
}

void AddressResolution::expire() {
  while (!deadlines_.empty() && deadlines_.begin()->first <= environment_.now()) {
    RdmaId& id = *ids_.find(deadlines_.begin()->second);
    deadlines_.erase(deadlines_.begin());
    id.deadline.reset();
    if (is_reachable(id)) {
      finish(id);
    } else {
      id.state = IdState::kBound;
      events_.emit(id, EventType::kAddrError, -ETIMEDOUT);
    }
  }
}

int AddressResolution::resolve_route(const CmCommand& command) {
  const auto in = parse<abi::ucma::ResolveRoute>(command);
  if (!in) return EINVAL;
  RdmaId* id;
  if (const int error = ids_.find_with_device(command.channel, in->id, id)) return error;
  if (in->timeout_ms == 0 || id->state != IdState::kAddressResolved) return EINVAL;
  id->state = IdState::kRouteResolved;
  id->num_paths = 1;
  events_.emit(*id, EventType::kRouteResolved);
  return 0;
}

std::optional<Instant> AddressResolution::next_deadline() const {
  return deadlines_.empty() ? std::nullopt : std::optional(deadlines_.begin()->first);
}

void AddressResolution::cancel(RdmaId& id) {
  if (id.deadline) deadlines_.erase({*id.deadline, id.number});
  id.deadline.reset();
}

}  // namespace rocemu::engine::cm
