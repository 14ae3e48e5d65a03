// The devices as programs and tools see them: their sockets, their files in sysfs, and their
// description over netlink. A change of a port or a device is visible in all these places before a
// program can act on it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "emulator/daemon/base/listener.h"
#include "emulator/daemon/kernel/nldev.h"
#include "emulator/daemon/kernel/runtime_directory.h"
#include "emulator/daemon/kernel/sysfs_tree.h"
#include "emulator/daemon/net/udp_network.h"
#include "emulator/daemon/run/worker.h"

namespace rocemu::daemon {

class ServedDevices : public NldevSource {
 public:
  /// Writes the files in sysfs. All arguments must outlive this object, which updates `devices`.
  ServedDevices(std::vector<engine::DeviceConfig>& devices, Worker& worker, const SysfsTree& tree,
                RuntimeDirectory& directory);

  /// Connects the network to which the devices are attached.
  void connect(const UdpNetwork& network);

  using OnConnect = std::function<void(engine::DeviceIndex, UniqueFd, PeerCredentials)>;
  /// Listens on the sockets of all devices.
  void serve(const OnConnect& on_connect);

  std::vector<std::string> names() const;
  /// Returns the device with this name. Throws ControlServer::Refusal if there is none.
  engine::DeviceIndex named(const std::string& name) const;

  /// Sets the port `up` or `down`, as the user requested. Throws ControlServer::Refusal.
  void set_port(engine::DeviceIndex index, const std::string& port);
  /// Updates the state of the port, which is up if the user has not set it down and its interface
  /// is up.
  void update_port(engine::DeviceIndex index);
  void remove(engine::DeviceIndex index);
  /// Updates what programs see. Must be called when the port or the GID table of the device has
  /// changed by itself, or when the device was removed.
  void on_changed(engine::DeviceIndex index);

  size_t device_count() const override { return devices_.size(); }
  bool has_device(engine::DeviceIndex index) const override { return !removed_.contains(index); }
  SysfsDevice device(engine::DeviceIndex index) override;
  engine::FabricSnapshot snapshot() override;
  std::vector<NldevClient> clients() override;
  std::optional<pid_t> pid_of(engine::CmChannelId channel) const override;

 private:
  /// Hides the device, so that programs can no longer find or open it.
  void hide(engine::DeviceIndex index);

  std::vector<engine::DeviceConfig>& devices_;
  Worker& worker_;
  const SysfsTree& tree_;
  RuntimeDirectory& directory_;
  const UdpNetwork* network_ = nullptr;  // null if no device is attached to UDP
  std::set<engine::DeviceIndex> removed_;
  std::vector<bool> wanted_down_;                     // ports, by `rocemu set`
  std::vector<std::unique_ptr<Listener>> listeners_;  // in the order of the devices
};

}  // namespace rocemu::daemon
