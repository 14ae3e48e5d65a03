// The replies of the kernel's RDMA subsystem over netlink ("nldev" in <rdma/rdma_netlink.h>), for
// rocemu's devices. `rdma dev`, `rdma link` and `rdma resource` read them, and libibverbs finds
// devices with them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "emulator/daemon/kernel/netlink_message.h"
#include "emulator/daemon/kernel/sysfs_tree.h"
#include "emulator/engine/snapshot.h"

namespace rocemu::daemon {

/// A context: a device that a program has opened
struct NldevClient {
  engine::ClientId id;
  engine::DeviceIndex device;
  pid_t pid;
};

/// Provides the current state of the devices and their users.
class NldevSource {
 public:
  virtual ~NldevSource() = default;
  /// Returns the number of devices. It includes removed devices, whose numbers are not reused.
  virtual size_t device_count() const = 0;
  virtual bool has_device(engine::DeviceIndex index) const = 0;
  virtual SysfsDevice device(engine::DeviceIndex index) = 0;  // whether the device has it
  virtual engine::FabricSnapshot snapshot() = 0;
  virtual std::vector<NldevClient> clients() = 0;
  /// Returns the process of the program that has this rdma_cm event channel; nothing if the channel
  /// no longer exists.
  virtual std::optional<pid_t> pid_of(engine::CmChannelId channel) const = 0;
};

/// Returns the replies to the requests in a datagram, whose contents can be arbitrary.
std::vector<Bytes> answer_nldev(std::span<const std::byte> datagram, NldevSource& source);

}  // namespace rocemu::daemon
