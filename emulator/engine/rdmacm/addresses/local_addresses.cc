#include "emulator/engine/rdmacm/addresses/local_addresses.h"

#include <algorithm>
#include <bit>

namespace rocemu::engine::cm {
namespace {

bool fits(Family family, const wire::IpAddress& address) {
  return family == Family::kIb || (family == Family::kIpv4) == address.is_v4();
}

bool is_loopback_v4(const wire::IpAddress& address) {
  return address.is_v4() && address.bytes[12] == 127;
}

uint32_t common_prefix(const wire::IpAddress& a, const wire::IpAddress& b) {
  uint32_t bits = 0;
  for (size_t i = 0; i < a.bytes.size(); ++i, bits += 8) {
    const auto difference = static_cast<uint8_t>(a.bytes[i] ^ b.bytes[i]);
    if (difference != 0) return bits + static_cast<uint32_t>(std::countl_zero(difference));
  }
  return bits;
}

}  // namespace

std::optional<LocalAddress> local_address(const Environment& environment,
                                          const wire::IpAddress& address) {
  const std::optional<DeviceIndex> device = environment.device_with_address(address);
  if (!device) return std::nullopt;
  const auto& own = environment.config(*device).addresses;
  const auto index = std::find(own.begin(), own.end(), address) - own.begin();
  return LocalAddress{*device, static_cast<uint8_t>(index)};
}

std::optional<LocalAddress> source_for(const Environment& environment,
                                       const SocketAddress& destination) {
  const bool inside = environment.device_with_address(destination.address).has_value();
  const bool loopback = is_loopback_v4(destination.address);
  std::optional<LocalAddress> best;
  uint32_t best_score = 0;
  for (uint32_t i = 0; i < environment.device_count(); ++i) {
    if (environment.is_removed(DeviceIndex{i})) continue;
    const DeviceConfig& config = environment.config(DeviceIndex{i});
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

bool is_loopback_of_nobody(const Environment& environment, const SocketAddress& address) {
  if (!is_loopback(address) || environment.device_with_address(address.address)) return false;
  for (uint32_t i = 0; i < environment.device_count(); ++i) {
    const DeviceConfig& config = environment.config(DeviceIndex{i});
    if (config.outside && std::ranges::any_of(config.addresses, is_loopback_v4)) return false;
  }
  return true;
}

std::optional<LocalAddress> first_address(const Environment& environment, Family family) {
  for (uint32_t i = 0; i < environment.device_count(); ++i) {
    if (environment.is_removed(DeviceIndex{i})) continue;
    const auto& own = environment.config(DeviceIndex{i}).addresses;
    for (size_t j = 0; j < own.size(); ++j) {
      if (fits(family, own[j])) return LocalAddress{DeviceIndex{i}, static_cast<uint8_t>(j)};
    }
  }
  return std::nullopt;
}

const wire::IpAddress& address_of(const Environment& environment, const LocalAddress& local) {
  return environment.config(local.device).addresses[local.gid_index];
}

}  // namespace rocemu::engine::cm
