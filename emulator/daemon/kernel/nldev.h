// The replies of the kernel's RDMA subsystem over netlink (<rdma/rdma_netlink.h>, "nldev"), for
// rocemu's devices. `rdma dev`, `rdma link` and `rdma resource` use them, and libibverbs finds
// devices by them.
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

/// A context: a process that has opened a device
struct NldevClient {
  engine::ClientId id;
  engine::DeviceIndex device;
  pid_t pid;
};

/// The source of the current state
class NldevSource {
 public:
  virtual ~NldevSource() = default;
  /// Includes removed devices, which keep their numbers.
  virtual size_t device_count() const = 0;
  virtual bool has_device(engine::DeviceIndex index) const = 0;
  virtual SysfsDevice device(engine::DeviceIndex index) = 0;  // whether the device has it
  virtual engine::FabricSnapshot snapshot() = 0;
  virtual std::vector<NldevClient> clients() = 0;
  /// Returns the process of the program with this rdma_cm event channel; nothing if the channel no
  /// longer exists.
  virtual std::optional<pid_t> pid_of(engine::CmChannelId channel) const = 0;
};

/// Returns the messages that answer the requests in one datagram, whose contents can be arbitrary.
std::vector<Bytes> answer_nldev(std::span<const std::byte> datagram, NldevSource& source);

}  // namespace rocemu::daemon
