#include "emulator/journal/header.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "emulator/network/file/file_plan.h"
#include "emulator/network/file/network_file.h"
#include "emulator/profile/profile_reader.h"
#include "emulator/profile/profile_text.h"

namespace rocemu::journal {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxDevices = 250;
/// The maximum number of a device's addresses. A profile may list each address once for each of the
/// two types of GID.
constexpr size_t kMaxGids = size_t{engine::kGidTableLength} * 2;

Json to_json(const engine::DeviceConfig& device) {
  Json json;
  json["name"] = device.name;
  json["mac"] = device.mac.bytes;
  Json& addresses = json["addresses"] = Json::array();
  for (const wire::IpAddress& address : device.addresses) {
    addresses.push_back(wire::to_string(address));
  }
  json["active_mtu"] = static_cast<uint32_t>(device.active_mtu);
  json["outside"] = device.outside;
  json["source_ports"] = device.source_ports;
  json["interfaces"] = device.interfaces;
  if (!device.profile->is_generic()) {
    json["profile"] = device.profile->name;
    json["profile_text"] = profile::to_yaml(*device.profile);
  }
  json["require_grh"] = device.policy.require_grh;
  json["resolve_neighbors"] = device.policy.resolve_neighbors;
  return json;
}

template <class Field>
Field field(const Json& json, const char* key) {
  try {
    return json.at(key).get<Field>();
  } catch (const Json::exception&) {
    throw std::runtime_error("its header has no \"" + std::string(key) + "\" of the right type");
  }
}

std::shared_ptr<const engine::NetworkPlan> parse_network(const std::string& text) {
  std::vector<std::string> warnings;  // were printed when the run began
  try {
    return network::parse_plan(text, "its network", warnings);
  } catch (const network::NetworkFileError& error) {
    throw std::runtime_error(std::string("its header has an invalid network: ") + error.what());
  }
}

engine::DeviceConfig parse_device(const Json& json) {
  engine::DeviceConfig device;
  device.name = field<std::string>(json, "name");
  device.mac.bytes = field<decltype(device.mac.bytes)>(json, "mac");
  for (const auto& text : field<std::vector<std::string>>(json, "addresses")) {
    const std::optional<wire::IpAddress> address = wire::parse_ip_address(text);
    if (!address) throw std::runtime_error("its header has an invalid address");
    device.addresses.push_back(*address);
  }
  if (device.addresses.empty() || device.addresses.size() > kMaxGids) {
    throw std::runtime_error("its header has a device with no or too many addresses");
  }
  const auto mtu = field<uint32_t>(json, "active_mtu");
  if (mtu < static_cast<uint32_t>(abi::Mtu::k256) || mtu > static_cast<uint32_t>(abi::Mtu::k4096)) {
    throw std::runtime_error("its header has a device with an invalid MTU");
  }
  device.active_mtu = static_cast<abi::Mtu>(mtu);
  device.outside = field<bool>(json, "outside");
  device.source_ports = field<std::vector<uint16_t>>(json, "source_ports");
  device.policy.require_grh = field<bool>(json, "require_grh");
  if (json.contains("profile")) {
    try {
      device.profile = profile::parse_profile(field<std::string>(json, "profile_text"),
                                              field<std::string>(json, "profile"), "its header");
    } catch (const profile::ProfileError& error) {
      throw std::runtime_error(std::string("its header has an invalid profile: ") + error.what());
    }
  }
  // Recordings of older versions have neither "interfaces" nor "resolve_neighbors".
  if (json.contains("interfaces")) {
    device.interfaces = field<std::vector<uint32_t>>(json, "interfaces");
  }
  if (json.contains("resolve_neighbors")) {
    device.policy.resolve_neighbors = field<bool>(json, "resolve_neighbors");
  }
  return device;
}

}  // namespace

std::string to_json(const Header& header) {
  Json json;
  json["rocemu"] = header.rocemu_version;
  json["clock"] = header.clock;
  json["wall_start_ns"] = header.wall_start_ns;
  json["seed"] = header.fabric.seed;
  json["trace_frames"] = header.fabric.trace_frames;
  json["ack_coalescing"] = header.fabric.ack_coalescing;
  json["same_keys"] = header.fabric.same_keys;
  json["adversarial"] = header.fabric.adversarial;
  if (!header.fabric.adversarial_choices.empty())
    json["adversarial_choices"] = header.fabric.adversarial_choices;
  json["link_latency_ns"] = header.fabric.link_latency.count();
  if (header.fabric.network != nullptr) json["network"] = header.fabric.network->text();
  Json& devices = json["devices"] = Json::array();
  for (const engine::DeviceConfig& device : header.fabric.devices) {
    devices.push_back(to_json(device));
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Header parse_header(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw std::runtime_error("its header is not JSON");
  Header header;
  header.rocemu_version = field<std::string>(json, "rocemu");
  header.clock = field<std::string>(json, "clock");
  header.wall_start_ns = field<int64_t>(json, "wall_start_ns");
  header.fabric.seed = field<uint64_t>(json, "seed");
  header.fabric.trace_frames = field<bool>(json, "trace_frames");
  header.fabric.ack_coalescing = field<uint32_t>(json, "ack_coalescing");
  if (header.fabric.ack_coalescing < 1 ||
      header.fabric.ack_coalescing > engine::kMaxAckCoalescing) {
    throw std::runtime_error("the ack_coalescing of its header is out of range");
  }
  if (json.contains("same_keys")) header.fabric.same_keys = field<bool>(json, "same_keys");
  if (json.contains("adversarial")) {
    header.fabric.adversarial = field<uint32_t>(json, "adversarial");
  }
  if (json.contains("adversarial_choices")) {
    header.fabric.adversarial_choices =
        field<std::vector<std::pair<uint8_t, uint64_t>>>(json, "adversarial_choices");
  }
  header.fabric.link_latency = engine::Duration(field<int64_t>(json, "link_latency_ns"));
  if (header.fabric.link_latency < engine::Duration(0)) {
    throw std::runtime_error("its header has a link with a negative latency");
  }
  if (json.contains("network"))
    header.fabric.network = parse_network(field<std::string>(json, "network"));
  for (const Json& device : field<Json>(json, "devices")) {
    header.fabric.devices.push_back(parse_device(device));
  }
  if (header.fabric.devices.empty() || header.fabric.devices.size() > kMaxDevices) {
    throw std::runtime_error("its header has no or too many devices");
  }
  if (header.fabric.network != nullptr &&
      header.fabric.network->host_count() < header.fabric.devices.size()) {
    throw std::runtime_error("its header has more devices than its network has hosts");
  }
  return header;
}

}  // namespace rocemu::journal
