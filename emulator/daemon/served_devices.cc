#include "emulator/daemon/served_devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "emulator/daemon/base/unix_socket.h"
#include "emulator/daemon/control/control_server.h"

namespace rocemu::daemon {

ServedDevices::ServedDevices(std::vector<engine::DeviceConfig>& devices, Worker& worker,
                             const SysfsTree& tree, RuntimeDirectory& directory)
    : devices_(devices),
      worker_(worker),
      tree_(tree),
      directory_(directory),
      wanted_down_(devices.size()) {
  std::vector<SysfsDevice> all;
  for (uint32_t i = 0; i < devices_.size(); ++i) all.push_back(device({i}));
  directory_.write_sysfs(tree_.files(all));
}

void ServedDevices::connect(const UdpNetwork& network) {
  network_ = &network;
  for (uint32_t i = 0; i < devices_.size(); ++i) {
    if (!network.is_up({i})) update_port({i});
  }
}

void ServedDevices::serve(const OnConnect& on_connect) {
  for (uint32_t i = 0; i < devices_.size(); ++i) {
    listeners_.push_back(std::make_unique<Listener>(
        worker_.loop(), listen_at(directory_.device_socket(i), SOCK_SEQPACKET),
        [on_connect, i](UniqueFd socket, PeerCredentials peer) {
          on_connect({i}, std::move(socket), peer);
        }));
  }
}

std::vector<std::string> ServedDevices::names() const {
  std::vector<std::string> names;
  for (const engine::DeviceConfig& device : devices_) names.push_back(device.name);
  return names;
}

engine::DeviceIndex ServedDevices::named(const std::string& name) const {
  const auto found = std::ranges::find(devices_, name, &engine::DeviceConfig::name);
  if (found == devices_.end()) {
    throw ControlServer::Refusal(
        fmt::format("there is no device '{}'; the devices are {}", name, fmt::join(names(), ", ")));
  }
  return {static_cast<uint32_t>(found - devices_.begin())};
}

void ServedDevices::set_port(engine::DeviceIndex index, const std::string& port) {
  if (port != "up" && port != "down") {
    throw ControlServer::Refusal(R"("port" must be "up" or "down")");
  }
  if (!has_device(index)) {
    throw ControlServer::Refusal(
        fmt::format("{} was removed, so it has no port", devices_[index.value].name));
  }
  wanted_down_[index.value] = port == "down";
  update_port(index);
}

void ServedDevices::update_port(engine::DeviceIndex index) {
  if (!has_device(index)) return;
  const bool up = !wanted_down_[index.value] && (network_ == nullptr || network_->is_up(index));
  worker_.engine_host().submit(engine::SetPort{index, up});
  const std::string& device = devices_[index.value].name;
  for (const SysfsFile& file : tree_.port_state_files(
           device, index.value, worker_.engine_host().device_facts(index).port)) {
    if (!directory_.replace_sysfs(file)) {
      spdlog::error("cannot show in sysfs that the port of {} is {}: {}", device,
                    up ? "up" : "down", std::strerror(errno));
    }
  }
}

void ServedDevices::remove(engine::DeviceIndex index) {
  hide(index);  // first, or a program could open the device that is about to fail
  listeners_[index.value].reset();
  worker_.engine_host().submit(engine::RemoveDevice{index});
}

// The listener is kept, since it may be calling this function. A client that still connects gets a
// device on which everything fails.
void ServedDevices::hide(engine::DeviceIndex index) {
  if (!removed_.insert(index).second) return;
  directory_.remove_device_socket(index.value);
  const std::string& device = devices_[index.value].name;
  for (const std::string& path : tree_.entry_paths(device, index.value)) {
    if (!directory_.remove_sysfs(path)) {
      spdlog::error("cannot remove {} from sysfs: {}", path, std::strerror(errno));
    }
  }
}

void ServedDevices::on_changed(engine::DeviceIndex index) {
  const EngineHost& host = worker_.engine_host();
  if (!host.engine().has_device(index)) return hide(index);
  engine::DeviceConfig& config = devices_[index.value];
  config.addresses = host.engine().addresses(index);
  for (const SysfsFile& file : tree_.files_of(device(index))) {
    if (!directory_.replace_sysfs(file)) {
      spdlog::error("cannot update the state of {} in sysfs: {}", config.name,
                    std::strerror(errno));
    }
  }
}

SysfsDevice ServedDevices::device(engine::DeviceIndex index) {
  const engine::DeviceConfig& config = devices_[index.value];
  const EngineHost::DeviceFacts facts = worker_.engine_host().device_facts(index);
  return {config.name,    config.addresses,
          facts.device,   facts.port,
          index.value,    tree_.netdevs_of(config.addresses),
          config.profile, worker_.engine_host().engine().simulated_network() != nullptr};
}

engine::FabricSnapshot ServedDevices::snapshot() {
  engine::FabricSnapshot snapshot = worker_.engine_host().engine().snapshot();
  if (network_ != nullptr) network_->append_counters(snapshot);
  return snapshot;
}

std::vector<NldevClient> ServedDevices::clients() {
  std::vector<NldevClient> clients;
  for (const ClientSession* session : worker_.sessions().list()) {
    if (session->is_attached()) {
      clients.push_back({session->id(), session->device(), session->peer().pid});
    }
  }
  return clients;
}

std::optional<pid_t> ServedDevices::pid_of(engine::CmChannelId channel) const {
  return std::as_const(worker_).cm_sessions().pid_of(channel);
}

}  // namespace rocemu::daemon
