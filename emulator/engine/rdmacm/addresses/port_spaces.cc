#include "emulator/engine/rdmacm/addresses/port_spaces.h"

#include <algorithm>
#include <cerrno>
#include <optional>

namespace rocemu::engine::cm {
namespace {

using abi::ucma::PortSpace;

// The range of Linux's default net.ipv4.ip_local_port_range.
constexpr uint16_t kFirstDynamic = 32768, kLastDynamic = 60999;

// Returns the port space of the id. An AF_IB address contains its port space in the service ID, as
// far as the mask covers it.
std::optional<PortSpace> space_of(const RdmaId& id) {
  if (id.source.family != Family::kIb) return id.port_space;
  const uint64_t mask = id.source.service_mask;
  for (const PortSpace space : {PortSpace::kIb, PortSpace::kTcp, PortSpace::kUdp}) {
    const bool allowed = id.port_space == space || id.port_space == PortSpace::kIb;
    if (allowed && (id.source.service & mask) == (service_prefix(space) & mask)) return space;
  }
  return std::nullopt;
}

}  // namespace

int PortSpaces::bind(RdmaId& id) {
  const std::optional<PortSpace> space = space_of(id);
  if (!space) return EPROTONOSUPPORT;
  if (id.source.port == 0) {
    if (const int error = choose_port(id, *space)) return error;
  } else if (const auto found = owners_.find({*space, id.source.port}); found != owners_.end()) {
    if (const int error = check(id, found->second, id.reuse_address)) return error;
  }
  if (id.source.family == Family::kIb) {
    id.source.service = service_prefix(*space);
    id.source.service_mask = ~uint64_t{0};
  }
  owners_[{*space, id.source.port}].push_back(&id);
  id.bound_space = space;
  return 0;
}

int PortSpaces::check_listen(const RdmaId& id) const {
  const auto found = owners_.find({*id.bound_space, id.source.port});
  return found == owners_.end() ? 0 : check(id, found->second, false);
}

void PortSpaces::unbind(RdmaId& id) {
  if (!id.bound_space) return;
  const auto found = owners_.find({*id.bound_space, id.source.port});
  id.bound_space.reset();
  if (found == owners_.end()) return;
  std::erase(found->second, &id);
  if (found->second.empty()) owners_.erase(found);
}

int PortSpaces::check(const RdmaId& id, const std::vector<const RdmaId*>& owners,
                      bool may_reuse) const {
  for (const RdmaId* other : owners) {
    if (other == &id || (may_reuse && other->reuse_address)) continue;
    if (id.family_only && other->family_only && id.source.family != other->source.family) continue;
    if (id.is_wildcard || other->is_wildcard) return EADDRNOTAVAIL;
    if (id.source.family == other->source.family && id.source.address == other->source.address) {
      return EADDRINUSE;
    }
  }
  return 0;
}

// Gives the id an unused port. Linux chooses randomly; choosing ports in turn is as good, and gives
// the same ports in every run.
int PortSpaces::choose_port(RdmaId& id, PortSpace space) {
  uint16_t& last = last_chosen_.try_emplace(space, kLastDynamic).first->second;
  for (uint32_t tried = 0; tried <= kLastDynamic - kFirstDynamic; ++tried) {
    last = last == kLastDynamic ? kFirstDynamic : static_cast<uint16_t>(last + 1);
    if (owners_.contains({space, last})) continue;
    id.source.port = last;
    return 0;
  }
  return EADDRNOTAVAIL;
}

}  // namespace rocemu::engine::cm
