// What the kernel's RDMA subsystem answers over netlink (<rdma/rdma_netlink.h>, "nldev"), for our
// devices: by it `rdma dev`, `rdma link` and `rdma resource` work, and libibverbs finds devices.
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

/// A context: which process has opened which device.
struct NldevClient {
  engine::ClientId id;
  engine::DeviceIndex device;
  pid_t pid;
};

/// What there is to tell, as of now.
class NldevSource {
 public:
  virtual ~NldevSource() = default;
  /// Removed ones as well, which keep their numbers.
  virtual size_t device_count() const = 0;
  virtual bool has_device(engine::DeviceIndex index) const = 0;
  virtual SysfsDevice device(engine::DeviceIndex index) = 0;  // it has it
  virtual engine::FabricSnapshot snapshot() = 0;
  virtual std::vector<NldevClient> clients() = 0;
  /// Of the program whose event channel of rdma_cm it is; nothing if that is gone.
  virtual std::optional<pid_t> pid_of(engine::CmChannelId channel) const = 0;
};

/// The messages that answer the requests in one datagram, which may be anything.
std::vector<Bytes> answer_nldev(std::span<const std::byte> datagram, NldevSource& source);

}  // namespace rocemu::daemon
