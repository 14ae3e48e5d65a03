#include "emulator/engine/rdmacm/addresses/binding.h"

#include <cerrno>

#include "emulator/engine/rdmacm/addresses/local_addresses.h"
#include "emulator/engine/rdmacm/command_codec.h"

namespace rocemu::engine::cm {
namespace {

/// Returns whether the scope of the address is the interface of the device's GID. (In Linux,
/// rdma_translate_ip() fails if no interface has the number, and cma_validate_port() fails if
/// another interface has it.)
bool has_scope_of(const SocketAddress& address, const DeviceConfig& device, uint8_t gid_index) {
  if (gid_index >= device.interfaces.size()) return true;  // not known
  return device.interfaces[gid_index] == address.scope;
}

}  // namespace

int Binding::bind_ip(const CmCommand& command) {
  const auto in = parse<abi::ucma::BindIp>(command);
  if (!in) return EINVAL;
  const std::optional<SocketAddress> address = address_in(in->address);
  if (!address) return EINVAL;
  RdmaId* id;
  if (const int error = ids_.find(command.channel, in->id, id)) return error;
  return bind_to(*id, *address);
}

int Binding::bind(const CmCommand& command) {
  const auto in = parse<abi::ucma::Bind>(command);
  if (!in) return EINVAL;
  const std::optional<SocketAddress> address = address_in(in->address, in->address_size);
  if (!address || in->reserved != 0) return EINVAL;
  RdmaId* id;
  if (const int error = ids_.find(command.channel, in->id, id)) return error;
  return bind_to(*id, *address);
}

int Binding::bind_to(RdmaId& id, const SocketAddress& address) {
  if (id.state != IdState::kIdle) return EINVAL;
  if (is_link_local(address) && address.scope == 0) return EINVAL;
  std::optional<LocalAddress> local;
  const bool is_wildcard =
      address.is_any() || (is_loopback(address) && !local_address(environment_, address.address));
  if (!is_wildcard) {
    local = is_loopback_gid(address) ? first_address(environment_, Family::kIb)
                                     : local_address(environment_, address.address);
    if (!local) return EADDRNOTAVAIL;
    if (environment_.is_removed(local->device)) return ENODEV;  // the address remains the machine's
    if (is_link_local(address) &&
        !has_scope_of(address, environment_.config(local->device), local->gid_index)) {
      return ENODEV;
    }
  }
  id.source = address;
  id.is_wildcard = is_wildcard;
  id.family_only = id.family_only_option.value_or(address.family == Family::kIpv4);
  id.destination = any_address(address.family);
  if (const int error = ports_.bind(id)) return error;
  id.state = IdState::kBound;
  id.local = local;
  return 0;
}

}  // namespace rocemu::engine::cm
