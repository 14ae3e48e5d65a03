// The first request of a client and the daemon's reply: the descriptors of the hello, and the
// locations of what client and daemon share.
#pragma once

#include <optional>
#include <vector>

#include "emulator/abi/control.h"
#include "emulator/daemon/base/clock.h"
#include "emulator/daemon/client/client_queues.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

struct HelloFds {
  UniqueFd client_end;
  UniqueFd mem_file;  // may be empty
  UniqueFd imported;  // another session's client end, if requested
};

/// Returns the descriptors of a hello by their purpose, or nothing if they are not the required
/// ones. `own_end` is the daemon's end of the connection.
std::optional<HelloFds> sort_hello_fds(std::vector<UniqueFd> fds, bool imports, int own_end);

/// Returns the reply to a hello, for a client whose doorbell memory has been set.
abi::Reply welcome(const ClientQueues& queues, engine::DeviceIndex device,
                   const Arena::SegmentFile& segment, const Clock& clock, bool fills_undefined,
                   const abi::PostRules& posts);

}  // namespace rocemu::daemon
